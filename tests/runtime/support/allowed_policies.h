// allowed_policies(): what is left of a problem's space on a device.
#pragma once

#include <vector>

#include <hone/kernel_family.h>

namespace hone {

/// Why a policy is not valid for the problem, or else why it is pruned; "" where it is neither.
inline Reason reason_to_skip(const Problem& problem, const Policy& policy, const DeviceFacts& facts) {
  const Reason invalid = problem.family->is_valid(problem, policy, facts);
  return invalid.empty() ? problem.family->prune(problem, policy, facts) : invalid;
}

/// The policies that are valid and not pruned.
inline std::vector<Policy> allowed_policies(const Problem& problem, const DeviceFacts& facts) {
  std::vector<Policy> policies = problem.family->space().all();
  std::erase_if(policies, [&](const Policy& one) { return !reason_to_skip(problem, one, facts).empty(); });
  return policies;
}

}  // namespace hone
