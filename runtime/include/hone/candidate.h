// Geometry, Candidate, Trial, Winner and Choice: from a possible choice to the one that a call was dispatched to.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <hone/kernel.h>
#include <hone/problem.h>
#include <hone/policy.h>
#include <hone/reason.h>

namespace hone {

/// The grid of a launch. A call is launched with min(max_blocks, tiles of the call) blocks, so that one geometry serves
/// every size of a range.
struct Geometry {
  /// The most blocks that CUDA allows along x.
  static constexpr std::int64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();

  std::int64_t max_blocks = 0;  ///< a persistent grid has the same number on every SM, or is one block; 0: not chosen
  /// Threads of these blocks, if a call of the class may be launched with blocks of more or fewer (WorkShape::
  /// most_block_threads), of which others are resident; 0: all have as many.
  int block_threads = 0;

  /// True for one block per tile, false for a persistent grid, see WorkShape::independent_blocks.
  constexpr bool is_block_per_tile() const { return max_blocks > kMostBlocks / 2; }

  bool operator==(const Geometry&) const = default;
};

/// A Policy and a grid. A persistent grid is resident as a whole, according to the occupancy query.
struct Candidate {
  Policy policy;
  Geometry geometry;

  bool operator==(const Candidate&) const = default;
};

/// The outcome of trying a candidate.
enum class Verdict : std::uint8_t {
  ok,        ///< measured, and right as far as it was verified
  wrong,     ///< gave a wrong result; never dispatched
  rejected,  ///< not measured; Trial::reason says why
  failed,    ///< did not compile or could not run; Trial::reason says why
};

inline constexpr std::array<std::string_view, 4> kVerdictNames{"ok", "wrong", "rejected", "failed"};
constexpr std::string_view name(Verdict verdict) { return kVerdictNames[static_cast<std::size_t>(verdict)]; }

/// One candidate on one problem, and the evidence about it. Fields that were not determined are 0.
struct Trial {
  Candidate candidate = {};
  int policies = 1;  ///< above 1: this trial stands for so many policies, not compiled for the same reason
  Resources resources = {};
  int resident_blocks = 0;                   ///< per SM, from the occupancy query
  std::int64_t bytes_in_flight_per_sm = 0;   ///< by the model: resident blocks × bytes in flight of a block
  double predicted_us = 0;                   ///< by the occupancy model
  double median_us = 0;  ///< measured, per call; after dropping out early: the leader's time × the ratio of the two
  double spread_us = 0;                      ///< half the interquartile range of the samples
  int samples = 0;
  double energy_uj = 0;         ///< of one call, by the counter of the whole device; 0: not measured
  double energy_spread_uj = 0;  ///< half of the range of its samples
  int sequence = 0;         ///< 1 for the first candidate that the search measured; 0: not measured, or not recorded
  bool is_default = false;  ///< the model's first choice, which MissPolicy::heuristic would have dispatched to
  Verdict verdict = Verdict::rejected;
  Reason reason = {};
};

/// The way in which an untuned class differs from the tuned one whose winner serves it, in the order in which lenders
/// are asked (hone/sdk/loans.h has the rule of each). Where they differ in several ways, the last of them.
enum class Loan : std::uint8_t {
  none,       ///< the winner is the class's own
  version,    ///< the same class, but shipped, and tuned with other sources of the kernel
  alignment,  ///< arrays are aligned otherwise
  context,    ///< the launch context is the other one
  size,       ///< one extent is larger, and the lender is large enough to saturate the memory
  operation,  ///< another operation or dtype that moves as many bytes with as much arithmetic
  shape,      ///< the nearest tuned size or shape
  transfer,   ///< predicted from the trials of another device (hone transfer)
  device,     ///< the same on the most similar device
};

inline constexpr std::array<std::string_view, 9> kLoanNames{
    "none", "version", "alignment", "context", "size", "operation", "shape", "transfer", "device"};
constexpr std::string_view name(Loan loan) { return kLoanNames[static_cast<std::size_t>(loan)]; }

/// The candidate that a range of problems is dispatched to, with its evidence.
struct Winner {
  Candidate candidate = {};
  Resources resources = {};
  int resident_blocks = 0;
  bool tuned = false;          ///< false: not measured for this; the model's choice, or the winner of another class
  double median_us = 0;        ///< at tuned_extents; 0 when not tuned
  double spread_us = 0;
  /// The context that it was chosen for. A graph problem may be served by the winner of the stream.
  LaunchContext launch_context = LaunchContext::stream;

  /// The extents at which it was measured. They may lie outside of `sizes`: then it was measured at another size.
  Extents tuned_extents{1, 1, 1};
  std::array<SizeRange, 3> sizes = {};  ///< the extents that it serves

  Loan loan = Loan::none;   ///< not none: the winner of another class, which a tuning of this class replaces
  std::string lender = {};  ///< that class: "reduce max f32 n=1048576"; "" where it is not known

  /// The origin of a tuned winner that came with Hone: "NVIDIA H100 80GB HBM3, 2026-11-25, Hone 0.1.0, driver 13.0". It
  /// was measured there, on a device that is the same. "": it was measured here.
  std::string shipped = {};

  /// True if it is the tuned winner of another class.
  bool is_from_nearest() const { return loan != Loan::none; }
};

/// The source of a choice.
enum class ChoiceSource : std::uint8_t {
  memory,     ///< the session's table in memory: a hit
  cache,      ///< loaded from a cache file by this call; nothing was compiled
  tuned,      ///< tuned by this call
  heuristic,  ///< the occupancy model's first choice, untuned, compiled by this call
  nearest,    ///< the tuned winner of the nearest class (Winner::loan, Winner::lender), not measured in this one
  shipped,    ///< tuned on a device that is the same, and shipped with Hone; compiled and verified by this call
};

inline constexpr std::array<std::string_view, 6> kChoiceSourceNames{"memory",    "cache",   "tuned",
                                                                    "heuristic", "nearest", "shipped"};
constexpr std::string_view name(ChoiceSource source) { return kChoiceSourceNames[static_cast<std::size_t>(source)]; }

/// The winner that a call was dispatched to, and where it came from. `winner` lives as long as the Session; it is null
/// if there was nothing to launch.
struct Choice {
  ChoiceSource source = ChoiceSource::memory;
  const Winner* winner = nullptr;
};

}  // namespace hone
