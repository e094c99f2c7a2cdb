// list_sweep(): where the winners of a size sweep are compared, and what else they serve.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include <hone/candidate.h>
#include <hone/tuning.h>

namespace hone::tuner {

/// Nearly as fast as the winner of a tuned problem, given by its index.
struct RunnerUp {
  Candidate candidate;
  std::size_t nearest_winner = 0;
};

/// A candidate that is not measured at a row, because it is known to be no match for the fastest there.
struct SlowCandidate {
  Candidate candidate;
  double ratio = 0;  ///< how many times as long as the fastest it takes; 0: it may not serve the row
};

/// A tuned problem of a sweep, or one between two of them.
struct SweepRow {
  Problem problem;
  std::size_t nearest_winner = 0;         ///< index of the tuned problem whose search found what serves it
  bool is_tuned = false;                  ///< it is that problem
  bool is_measured = true;                ///< otherwise times count as those at the next larger one that is
  bool is_center = false;                 ///< of those that are measured between two tuned ones; it is measured first
  bool may_change = true;                 ///< otherwise it stays with that winner
  std::vector<RunnerUp> runners_up = {};  ///< of the tuned problems beside it: compared as well
  std::vector<SlowCandidate> slow = {};   ///< not compared
  std::optional<Candidate> chosen = {};   ///< of one between; else the nearest winner serves it
  Tuning comparison = {};                 ///< without trials where nothing was measured
};

struct SizeSweep {
  std::vector<SweepRow> compared;  ///< by what candidates take there; along an axis they ascend
  std::vector<SweepRow> between;   ///< where there is no order: the nearest winner serves them
};

/// The most classes that are measured between two tuned sizes, at even distances.
inline constexpr std::size_t kMostBetween = 3;

/// The problems, which are tuned, and the classes between them that `is_wanted`, each at its center and with the
/// nearest winner, as shapes_between() names it. Where the problems differ in one extent alone, `axis`, something is
/// chosen for all of them; otherwise only for the problems. `may_change` is parallel to the problems.
SizeSweep list_sweep(const std::vector<Problem>& problems, const std::vector<bool>& may_change,
                     std::optional<std::size_t> axis, const std::function<bool(const Problem&)>& is_wanted);

/// The end of a shape's box of whole octaves, where a grid that fits the shape may not fit: as near as rows are aligned
/// as they are in the shape. nullopt: the problem has a lone extent, whose class of a quarter of an octave is too
/// narrow for that to matter, or the family has nothing to do there.
std::optional<Problem> largest_corner(const Problem& problem);

}  // namespace hone::tuner
