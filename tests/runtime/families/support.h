// What the tests of the families share.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <hone/kernel_family.h>

namespace hone {

inline constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

/// The variants that the problem's family does not reject.
inline std::vector<Variant> allowed_variants(const Problem& problem, const DeviceFacts& facts) {
  std::vector<Variant> variants = problem.family->space().all();
  std::erase_if(variants, [&](const Variant& one) { return !problem.family->reject(problem, one, facts).empty(); });
  return variants;
}

}  // namespace hone
