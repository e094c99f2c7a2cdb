// Geometry, Candidate, Trial and Winner: from a possible choice to the one that calls are dispatched to.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <hone/kernel.h>
#include <hone/problem.h>
#include <hone/policy.h>

namespace hone {

/// How many blocks a launch may have. The grid of a call is min(max_blocks, tiles of the call), so that one
/// geometry serves every size of a range.
struct Geometry {
  /// Of a grid, along x: what CUDA allows.
  static constexpr std::int64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();

  std::int64_t max_blocks = 0;  ///< 1, or the same number for every SM; 0: none was listed

  /// One block per tile of any call, instead of a persistent grid (WorkShape::independent_blocks).
  constexpr bool is_block_per_tile() const { return max_blocks > kMostBlocks / 2; }

  bool operator==(const Geometry&) const = default;
};

/// A Policy plus a launch geometry that the occupancy query says is resident.
struct Candidate {
  Policy policy;
  Geometry geometry;

  bool operator==(const Candidate&) const = default;
};

/// What became of a candidate.
enum class Verdict : std::uint8_t {
  ok,        ///< measured, and right as far as it was checked
  wrong,     ///< gave a wrong result: never dispatched
  rejected,  ///< not measured; Trial::reason says why
  failed,    ///< did not compile or could not run; Trial::reason says why
};

inline constexpr std::array<std::string_view, 4> kVerdictNames{"ok", "wrong", "rejected", "failed"};
constexpr std::string_view name(Verdict verdict) { return kVerdictNames[static_cast<std::size_t>(verdict)]; }

/// One candidate on one problem, and what is known of it. Fields that were never determined are 0.
struct Trial {
  Candidate candidate = {};
  int policies = 1;  ///< above 1: one of so many that were left out uncompiled, all for the same reason
  Resources resources = {};
  int resident_blocks = 0;                   ///< per SM, from the occupancy query
  std::int64_t bytes_in_flight_per_sm = 0;   ///< modelled: resident blocks × bytes a block has outstanding
  double predicted_us = 0;                   ///< by the occupancy model
  double median_us = 0;  ///< measured, per call; if it dropped out early: in proportion to the fastest one beside it
  double spread_us = 0;                      ///< half the interquartile range of the samples
  int samples = 0;
  bool is_default = false;  ///< the model's first choice: what `heuristic` would have dispatched to
  Verdict verdict = Verdict::rejected;
  std::string reason = {};
};

/// The candidate that a range of problems is dispatched to, with its evidence.
struct Winner {
  Candidate candidate = {};
  Resources resources = {};
  int resident_blocks = 0;
  bool tuned = false;          ///< false: never measured here; the occupancy model's choice, or that of a near shape
  double median_us = 0;        ///< at tuned_extents; 0 when not tuned
  double spread_us = 0;
  LaunchContext launch_context = LaunchContext::stream;  ///< that it was chosen for; a graph may be lent the stream's
  Extents tuned_extents{1, 1, 1};  ///< where it was measured; of an untuned one outside of `sizes`: the tuned shape
                                   ///< that it was taken from, see is_from_nearest()
  std::array<SizeRange, 3> sizes = {};  ///< the extents that it serves

  /// Whether it is untuned here, but was tuned for the nearest shape that was.
  bool is_from_nearest() const {
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (tuned_extents[i] < sizes[i].first || tuned_extents[i] > sizes[i].last) return !tuned;
    return false;
  }
};

/// Where a choice came from.
enum class ChoiceSource : std::uint8_t {
  memory,     ///< the session's table: the hit path
  cache,      ///< the cache file, this call; nothing was compiled
  tuned,      ///< tuned by this call
  heuristic,  ///< the occupancy model's first choice, compiled by this call
  nearest,    ///< the tuned winner of the nearest shape (Winner::tuned_extents), untuned for this one
};

inline constexpr std::array<std::string_view, 5> kChoiceSourceNames{"memory", "cache", "tuned", "heuristic", "nearest"};
constexpr std::string_view name(ChoiceSource source) { return kChoiceSourceNames[static_cast<std::size_t>(source)]; }

/// What a call was dispatched to, and why. `winner` lives as long as the Session.
struct Choice {
  ChoiceSource source = ChoiceSource::memory;
  const Winner* winner = nullptr;
};

}  // namespace hone
