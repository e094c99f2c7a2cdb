// Accuracy of sums: error, error bound and the peers' error beside Hone's, on inputs whose exact sum is known.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <hone/session.h>

#include "benchmarks/peers/peer.h"

namespace hone::benchmarks {

/// The errors of one contestant's result for one input.
struct AccuracyRow {
  std::string experiment;
  std::string by;
  std::int64_t n = 0;
  long double found = 0;
  long double exact = 0;
  long double bound = 0;  ///< of pairwise summation; 0 for integers

  long double error() const;
};

/// How many pairwise bounds an error may be: blocks add in trees, but the elements of one thread in a chain.
inline constexpr int kAllowedBounds = 4;

/// Returns true if the error is within kAllowedBounds bounds; for integers, if there is none.
bool is_accurate(const AccuracyRow& row);

/// |error| ≤ γ(⌈log2 n⌉) Σ|x|, with γ(k) = k·u/(1 − k·u) and u = 2^−24 for f32: Higham, Accuracy and Stability of
/// Numerical Algorithms, 2nd edition, §4.2, equation (4.6).
long double pairwise_bound(std::int64_t n, long double sum_of_magnitudes);

/// Runs every experiment on up to 2^30 elements, as many as fit into `memory`, which is overwritten. Every exact sum is
/// found in integers: floats are multiples of a power of two.
std::vector<AccuracyRow> measure_accuracy(Session& session, const std::vector<std::unique_ptr<Peer>>& peers,
                                          void* memory, std::size_t bytes);

std::string accuracy_table(const std::vector<AccuracyRow>& rows);
nlohmann::ordered_json to_json(const std::vector<AccuracyRow>& rows);

}  // namespace hone::benchmarks
