// From a problem to the candidate that serves it: by measurement, or by the occupancy model alone.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <hone/device.h>
#include <hone/error.h>
#include <hone/tuning.h>

#include "runtime/jit/binary_memo.h"

namespace hone {

/// tune() with a memo of binaries that outlives the tuning.
Tuning choose_by_measuring(const std::shared_ptr<Device>& device, const Problem& problem, const TuningOptions& options,
                           BinaryMemo& memo);

/// The occupancy model's first choice for `problem`, compiled and loaded, never measured.
struct ModelChoice {
  Trial trial;
  std::shared_ptr<const Binary> binary;
  std::shared_ptr<const Module> module;
};

/// Says what is wrong with a choice; "" if nothing is (choice_check.h). Throws NotResident where its blocks have no
/// room to wait for each other.
using ChoiceCheck = std::function<std::string(const ModelChoice&)>;

/// Whether the blocks of a grid may wait for each other, which needs all of them resident at once
/// (WorkShape::cooperative).
enum class Cooperation { allowed, refused };

/// Compiles policies in the order of the ranking until one has a candidate that passes the check, and no later one
/// promises to be better than it is by its compiled code (may_be_better()): as a rule, the first. Where all are pruned,
/// the best of them serves. When the check throws NotResident, no other policy whose blocks wait for each other is
/// tried. Without a check, it may run while the caller captures a stream. Throws compile_failed when no policy of the
/// family gives a candidate, device_failed when three do not pass or all that would are not resident, and unsupported
/// when there is no compiler.
ModelChoice choose_by_model(Device& device, const Problem& problem, std::size_t workspace_bytes, BinaryMemo& memo,
                            const ChoiceCheck& check = {}, Cooperation cooperation = Cooperation::allowed);

/// The error of a call whose grid was refused, and which no other policy serves, with what to do.
Error without_others(const Problem& problem, const NotResident& refused, const Error& others);

/// Throws Error(invalid_argument) when the family refuses the problem.
void require_accepted(const Problem& problem);

}  // namespace hone
