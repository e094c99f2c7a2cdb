// The reduce_custom family: a reduction by the caller's expressions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hone/custom_reduction.h>

#include "runtime/families/custom/custom_verifier.h"
#include "runtime/families/reduce/reduction_family.h"

namespace hone {

/// Its one operation has the name of the expressions; Problem::accumulator and Problem::result are always set.
class CustomFamily final : public ReductionFamily {
 public:
  /// The family of expressions; made when first asked for, and then kept. Thread-safe. Throws as CustomReduction does.
  static const CustomFamily& of(const ReduceExpressions& expressions);

  std::string refuse(const Problem& problem) const override;
  std::vector<BufferSpec> buffers(const Problem& problem) const override;
  const Verifier& verifier() const override { return verifier_; }

  const ReduceExpressions& expressions() const { return expressions_; }

  /// The header with the expressions, and the type in it that the kernels take.
  OperationSource operation(const Problem& problem) const override;

 protected:
  std::size_t partial_bytes(const Problem& problem) const override;

 private:
  explicit CustomFamily(const ReduceExpressions& expressions);

  ReduceExpressions expressions_;
  std::string_view operation_;
  CustomVerifier verifier_{*this};
};

}  // namespace hone
