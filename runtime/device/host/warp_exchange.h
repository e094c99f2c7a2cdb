// exchange(): what a warp operation gives each of its lanes.
#pragma once

#include <optional>

#include "runtime/device/host/prelude/host_abi.h"

namespace hone {

/// A lane that asked for something undefined.
struct ExchangeError {
  int lane = 0;
  int source_lane = 0;     ///< not in the mask
  bool bad_width = false;  ///< or: the width is no power of two up to 32
};

/// Sets `result` (and `all_match`) of every call in `calls` whose bit is set in `mask`; the calls agree on operation,
/// operand size and mask. Semantics as in the CUDA C++ Programming Guide, "Warp Shuffle/Vote/Match/Reduce Functions";
/// where a shuffle's source lies outside its segment, PTX's shfl.sync gives the lane its own value.
std::optional<ExchangeError> exchange(hone_host::WarpCall* const (&calls)[32], unsigned mask);

}  // namespace hone
