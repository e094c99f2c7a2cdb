// allowed_policies(): what is left of a problem's space on a device.
#pragma once

#include <vector>

#include <hone/kernel_family.h>

namespace hone {

/// The policies that the problem's family does not reject.
inline std::vector<Policy> allowed_policies(const Problem& problem, const DeviceFacts& facts) {
  std::vector<Policy> policies = problem.family->space().all();
  std::erase_if(policies, [&](const Policy& one) { return !problem.family->reject(problem, one, facts).empty(); });
  return policies;
}

}  // namespace hone
