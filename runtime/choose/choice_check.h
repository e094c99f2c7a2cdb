// fault_of_choice(): whether a candidate that nothing has measured gives right results.
#pragma once

#include <memory>
#include <string>

#include <hone/candidate.h>
#include <hone/device.h>
#include <hone/problem.h>

#include "runtime/jit/binary_memo.h"

namespace hone {

/// Runs `candidate`, whose code is `module`, on a small problem of its class, with every kind of input and between
/// canaries, and compares the results: milliseconds, and the compilation of the reference kernel where the family has
/// one. Allocates, and waits for a stream of its own. Returns what is wrong; "" if nothing is, or if nothing can be
/// said: the family has no reference, the device is absent, or memory is short. Throws Error: invalid_argument if the
/// reference itself fails or depends on the order of elements, compile_failed if it does not compile, device_lost; and
/// NotResident if the candidate's blocks have to be resident at once and are not.
std::string fault_of_choice(const std::shared_ptr<Device>& device, const Problem& problem, const Candidate& candidate,
                            const std::shared_ptr<const Module>& module, BinaryMemo& memo);

}  // namespace hone
