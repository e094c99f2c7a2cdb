// allowed_variants(): what is left of a problem's space on a device.
#pragma once

#include <vector>

#include <hone/kernel_family.h>

namespace hone {

/// The variants that the problem's family does not reject.
inline std::vector<Variant> allowed_variants(const Problem& problem, const DeviceFacts& facts) {
  std::vector<Variant> variants = problem.family->space().all();
  std::erase_if(variants, [&](const Variant& one) { return !problem.family->reject(problem, one, facts).empty(); });
  return variants;
}

}  // namespace hone
