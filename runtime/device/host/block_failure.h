// BlockFailure: what a check found in a block, and its text.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "runtime/device/host/prelude/host_abi.h"

namespace hone {

/// One lane in a report: which it is, and where it was last seen.
struct LaneReport {
  hone_host::Index3 thread{};
  hone_host::Site site{};       ///< file is null: it has not met other lanes yet
  const char* what = "";        ///< "waits in __syncthreads()", "has returned", …
};

/// Plain data, filled on a lane's small stack; the text is made later, elsewhere.
struct BlockFailure {
  enum class Kind : std::uint8_t {
    none,
    divergent_barrier,
    barrier_without_all,
    mask_omits_caller,
    mask_names_absent_lanes,
    lane_left_warp_op,
    warp_op_mismatch,
    shuffle_from_outside,
    shuffle_width,
    deadlock,
    stack_overflow,
    wild_access,
    arithmetic_fault,
    undefined_operation,
    signed_overflow,
    bad_index,
    bad_shift,
    bad_conversion,
    dead_end,
    dynamic_smem_overrun,
    copies_in_flight,
    copy_leaves_smem,
    trap,
    assertion,
    deadline,
    endless_lane,
    endless_block,
  };
  static constexpr int kMaxReports = 8;

  Kind kind = Kind::none;
  hone_host::Index3 block{};
  std::array<LaneReport, kMaxReports> lanes{};
  int lane_count = 0;
  unsigned mask = 0;         ///< of the offending warp operation
  unsigned other_mask = 0;   ///< absent lanes, the other side's mask, …
  int source_lane = 0;       ///< shuffles: the lane that was to be read
  const char* text = "";     ///< assertions: the expression
  std::uint64_t number = 0;  ///< a size, a width, milliseconds or an address
  hone_host::Overflow overflow{};  ///< signed_overflow: what was computed
  hone_host::BadIndex bad_index{};
  hone_host::BadShift bad_shift{};
  hone_host::BadConversion bad_conversion{};
  hone_host::DeadEnd dead_end{};
  std::uint64_t code_address = 0;  ///< where in its module a signal met the kernel; 0: not known

  void add(const LaneReport& lane) {
    if (lane_count < kMaxReports) lanes[static_cast<std::size_t>(lane_count++)] = lane;
  }
};

/// Says what was found, where, on both sides, and what to do, in the last line. `kernel` names entry and unit;
/// `is_checked`: a check has looked for the line in the source. `details` are lines that say more, each after a line
/// break.
std::string describe(const BlockFailure& failure, const std::string& kernel, bool is_checked,
                     const std::string& details);

}  // namespace hone
