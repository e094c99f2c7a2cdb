// The reduce_fused family: several reductions of one array in one pass.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <hone/fused_reduce.h>

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
  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;
  std::string verify(const Problem& problem, const Candidate& candidate,
                     std::span<const std::vector<std::byte>> patterns,
                     std::span<const std::vector<std::byte>> outputs) const override;

 protected:
  std::size_t partial_bytes(const Problem& problem) const override;
  OperationSource operation(const Problem& problem) const override;

 private:
  explicit FusedFamily(std::vector<ReduceOp> ops);

  std::vector<ReduceOp> ops_;
  std::string joined_;
  std::string_view operation_;
  std::array<std::vector<std::string_view>, kDTypes.size()> kinds_;  ///< by dtype
};

}  // namespace hone
