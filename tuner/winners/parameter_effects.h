// ParameterEffect: what the values of a kernel's parameters were worth in one tuning. Pure: trials in, figures out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cache/records.h"

namespace hone::tuner {

struct ValueEffect {
  std::string_view value;
  const cache::TrialRecord* best = nullptr;  ///< the fastest measured candidate with it
};

/// Candidates that were measured stand for their values, the fastest for each. A search measures what promises most, so
/// bad values look better than they are, except after hone tune --exhaustive.
struct ParameterEffect {
  std::string_view name;
  std::vector<ValueEffect> values;  ///< the fastest first, at least one

  /// How much longer the next best value takes than the best, and the worst: 0.05 for 5 %; 0 with a single value.
  double next() const { return values.size() > 1 ? cost(values[1]) : 0; }
  double worst() const { return cost(values.back()); }

 private:
  double cost(const ValueEffect& effect) const { return effect.best->median_us / values.front().best->median_us - 1; }
};

/// The parameters with their worst value's cost, the highest first. `tuning` must outlive the result.
std::vector<ParameterEffect> parameter_effects(const cache::TuningRecord& tuning);

/// Values of one parameter that no measured candidate has, for one reason.
struct UntriedValues {
  std::string_view parameter;
  std::vector<std::string> values;
  std::string reason;  ///< "" if it is not known
};

/// If a built-in family leaves out every policy with a value, the reasons are what it says of those nearest to the
/// winner, up to three; else the trials with that value tell it. Of other families, the values are those of the trials.
std::vector<UntriedValues> untried_values(const cache::StoredWinner& stored, const cache::TuningRecord& tuning);

}  // namespace hone::tuner
