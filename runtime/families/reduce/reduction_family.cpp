#include "runtime/families/reduce/reduction_family.h"

#include "runtime/families/reduce/reduce_layout.h"

namespace hone {

std::uint32_t peeled_alignment(DType dtype, std::uint32_t alignment) {
  return alignment < kMaxAlignment ? static_cast<std::uint32_t>(info(dtype).size_bytes) : kMaxAlignment;
}

std::string ReductionFamily::fault_of(const Problem& problem) const {
  return size_fault("elements", problem.extents[0], element_bytes(problem));
}

/// Kernels for long arrays are right for short ones.
bool ReductionFamily::is_served_by(const Problem& problem, const Policy& policy, const Unit& of_policy) const {
  return KernelFamily::is_served_by(problem, policy, of_policy) ||
         (!is_canonical(problem) && ReduceLayout(problem, policy).unit(true).has_code_of(of_policy));
}

}  // namespace hone
