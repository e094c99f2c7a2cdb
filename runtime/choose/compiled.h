// CompiledCode: a policy with its binary and the module it was loaded as.
#pragma once

#include <memory>

#include <hone/device.h>
#include <hone/kernel_family.h>

#include "runtime/jit/binary_memo.h"
#include "runtime/search/candidates.h"

namespace hone {

struct CompiledCode {
  CompiledPolicy compiled = {};
  std::shared_ptr<const Binary> binary = {};
  std::shared_ptr<const Module> module = {};
};

/// The unit of a policy with the family's sources as its headers.
Unit unit_of(const ProblemClass& problem_class, const Policy& policy);

/// Loads a binary, unless `memo` has it loaded, and asks for its resources and occupancy. No block of a grid whose
/// blocks wait for each other counts as resident where the device has no room for all of them. Throws device_failed.
CompiledCode load_policy(Device& device, const Problem& problem, const Policy& policy, const Unit& unit,
                         std::shared_ptr<const Binary> binary, BinaryMemo* memo = nullptr);

/// The family's reference kernel, compiled and loaded. Throws compile_failed with the compiler's log, device_failed.
std::shared_ptr<const Module> load_reference(Device& device, const Problem& problem, BinaryMemo& memo);

}  // namespace hone
