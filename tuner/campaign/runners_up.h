// RunnersUp: what lost a tuning by little, as the cache has it.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <hone/device_facts.h>
#include <hone/tuning.h>

#include "cache/store.h"

namespace hone::tuner {

/// RunnersUp has the fastest few of each tuned problem of a line that are at most 5 % behind its winner and win nowhere
/// in the line: they may be the best at a size beside it. A tuning is read when it is first asked about; throws
/// StoreError. All references must outlive it.
class RunnersUp {
 public:
  RunnersUp(const cache::Store& store, const DeviceFacts& facts, const std::vector<Problem>& problems,
            const std::vector<Candidate>& winners)
      : store_(store), facts_(facts), problems_(problems), winners_(winners) {}

  /// Returns those of a problem, given by its index.
  const std::vector<Candidate>& of(std::size_t problem) { return tuned(problem).runners_up; }

  /// The time that its tuning took, as the cache has it.
  double tuning_ms(std::size_t problem) { return tuned(problem).tuning_ms; }

  /// How many times as long as the winner of a problem a candidate takes, by the problem's own tuning: as measured or,
  /// for one whose code was compiled but not run, as expected. Infinity: it failed or was wrong. nullopt: not known.
  std::optional<double> ratio(std::size_t problem, const Candidate& candidate);

 private:
  struct Tuned {
    std::vector<std::pair<Candidate, double>> ratios;
    std::vector<Candidate> runners_up;
    double tuning_ms = 0;
  };

  const Tuned& tuned(std::size_t problem);

  const cache::Store& store_;
  const DeviceFacts& facts_;
  const std::vector<Problem>& problems_;
  const std::vector<Candidate>& winners_;
  std::map<std::size_t, Tuned> tuned_;  ///< by the problem's index
};

}  // namespace hone::tuner
