// verify_candidate(): whether a candidate that was not measured here gives right results, on small problems.
#pragma once

#include <memory>
#include <string>

#include <hone/device.h>
#include <hone/kernel_family.h>

#include "runtime/jit/binary_memo.h"
#include "runtime/measure/loaded_candidate.h"

namespace hone {

/// Runs the candidate on every kind of input of the problems that the family verifies, each made small enough to take
/// milliseconds (small_problem()), and compares with the reference. "" when right, else what was wrong. Allocates, uses
/// a stream of its own, and waits for it. Throws device_lost; any other failure is a fault of the candidate.
std::string verify_candidate(const std::shared_ptr<Device>& device, const Problem& problem,
                             const LoadedCandidate& loaded, BinaryMemo& memo);

}  // namespace hone
