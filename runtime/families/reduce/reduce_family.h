// The reduce family: all elements of an array to one value, or two.
#pragma once

#include <hone/reduce_spec.h>

#include "runtime/families/reduce/reduce_verifier.h"
#include "runtime/families/reduce/reduction_family.h"

namespace hone {

inline const ReduceOpInfo& op_of(const Problem& problem) { return kReduceOps[problem.operation]; }

/// KernelFamily::arithmetic() of families of reductions: arrays, bytes of an element, accumulators and results.
std::string reduce_arithmetic(const ReduceSpec& spec);

/// Operations as ReduceOp.
class ReduceFamily final : public ReductionFamily {
 public:
  ReduceFamily();

  std::string refuse(const Problem& problem) const override;
  bool offers_reproducible(const Problem& problem) const override {
    return reduce_spec_of(problem).is_reproducible();
  }
  std::string arithmetic(const Problem& problem) const override { return reduce_arithmetic(reduce_spec_of(problem)); }
  std::vector<BufferSpec> buffers(const Problem& problem) const override;
  const Verifier& verifier() const override { return verifier_; }

 protected:
  int inputs(const Problem& problem) const override;
  std::size_t partial_bytes(const Problem& problem) const override;
  OperationSource operation(const Problem& problem) const override;

 private:
  ReduceVerifier verifier_{*this};
};

/// How the kernels spell an operation, with what it is instantiated for. Indices of elements have 32 or 64 bits.
OperationSource operation_source(const ReduceSpec& spec, bool has_wide_index);

/// `kernels` and the templates of all operations.
std::vector<std::string_view> with_operations(std::vector<std::string_view> kernels);

/// sizeof of its State.
std::size_t state_bytes(const ReduceSpec& spec, bool has_wide_index);

/// Why an operation is not defined for the dtypes of the spec; "" if it is.
std::string refuse_dtypes(const ReduceSpec& spec);

}  // namespace hone
