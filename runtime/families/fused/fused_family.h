// The reduce_fused family: several reductions of one array in one pass.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hone/fused_reduction.h>

#include "runtime/families/fused/fused_verifier.h"
#include "runtime/families/reduce/reduction_family.h"

namespace hone {

/// One operation, "sum+min+max", which stands for its list.
class FusedFamily final : public ReductionFamily {
 public:
  /// The family of a list; made when first asked for, and then kept. Thread-safe. Throws as FusedReduction does.
  static const FusedFamily& of(std::span<const ReduceOp> ops);

  std::span<const ReduceOp> ops() const { return ops_; }

  std::string_view name() const override { return "reduce_fused"; }
  int version() const override { return 1; }
  std::span<const SourceFile> sources() const override;
  std::span<const std::string_view> operations() const override { return {&operation_, 1}; }

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
  FusedVerifier verifier_;
};

}  // namespace hone
