// eliminate(): who is measured again, who drops out, and who is left. Knows numbers alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace hone {

/// One competitor: its samples so far, in the order in which they were taken.
struct Racer {
  std::vector<double> samples_us;
  double resolution_us = 0;  ///< smallest difference between two of its samples that means anything
};

struct EliminationRules {
  std::size_t first_samples = 3;  ///< that every racer has before it starts; they were not taken side by side
  std::size_t most_samples = 48;
  std::size_t halve_above = 8;  ///< a larger field loses its slower half in every round, told apart or not

  /// First samples may lie minutes of a drifting clock apart: in the first round a racer drops out only when its
  /// interval lies above the leader's by this share.
  double drift_allowance = 0.03;

  /// Who is behind the fastest by less than this share, or this time, need not be told from it. In another process the
  /// same launches of 3 to 6 µs take up to 0.1 µs more or less, whatever memory and code they use; what fills the GPU
  /// with blocks more than what has one a multiprocessor (H100, CUDA 13.0, 2026-11).
  double indifference = 0.002;
  double indifferent_us = 0.05;

  std::uint32_t seed = 1;  ///< of the order within the rounds
};

/// Takes one more sample of a racer and appends it; false: it failed and is out.
using TakeSample = std::function<bool(std::size_t racer)>;

/// Narrows the field in rounds. In each, racers drop out whose interval (see estimate()) lies above that of the
/// leader, the one with the lowest median, or that compare_pairs() finds slower, by more than what need not be told; a
/// large field also loses its slower half. The rest get as many samples again as they have, one each in turn, in an
/// order that is shuffled every time; so the last two are compared pair by pair. Ends when one is left, when all have
/// `most_samples`, when all samples are the same number or all differences for sure below the clock's resolution or the
/// indifference, or when `keep_going` says no.
///
/// Returns the racers that cannot, or need not, be told from the fastest one by their side-by-side samples, it first.
/// Empty when all have failed.
std::vector<std::size_t> eliminate(std::vector<Racer*>& racers, const EliminationRules& rules,
                                   const TakeSample& take_sample, const std::function<bool()>& keep_going);

}  // namespace hone
