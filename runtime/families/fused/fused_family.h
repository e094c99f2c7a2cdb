// The reduce_fused family: several reductions of one array in one pass.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hone/fused_reduction.h>

#include "runtime/families/reduce/reduce_verifier.h"

namespace hone {

/// One operation, "sum+min+max", which stands for its list.
class FusedFamily final : public ReductionFamily {
 public:
  /// The family of a list; made when first asked for, and then kept. Thread-safe. Throws as FusedReduction does.
  static const FusedFamily& of(std::span<const ReduceOp> ops);

  std::span<const ReduceOp> ops() const { return ops_; }

  std::string refuse(const Problem& problem) const override;
  std::vector<BufferSpec> buffers(const Problem& problem) const override;
  const Verifier& verifier() const override { return verifier_; }

 protected:
  std::size_t partial_bytes(const Problem& problem) const override;
  OperationSource operation(const Problem& problem) const override;

 private:
  explicit FusedFamily(std::vector<ReduceOp> ops);

  std::vector<ReduceOp> ops_;
  std::string joined_;
  std::string_view operation_;
  ReduceVerifier verifier_;
};

}  // namespace hone
