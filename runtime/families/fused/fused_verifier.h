// FusedVerifier: each result of a fused reduction against the reference of its operation.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <hone/reduce_spec.h>
#include <hone/verifier.h>

namespace hone {

class FusedFamily;

/// One of the operations that a fused problem is made of, as a reduction of its own.
ReduceSpec fused_member(const Problem& problem, ReduceOp op);

/// Verifies all outputs, on the inputs of all operations. `family` must outlive it.
class FusedVerifier final : public Verifier {
 public:
  /// Reads the operations of `family`, nothing else.
  explicit FusedVerifier(const FusedFamily& family);

  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;
  std::string verify(const Problem& problem, const Candidate& candidate,
                     std::span<const std::vector<std::byte>> patterns,
                     std::span<const std::vector<std::byte>> outputs) const override;

 private:
  const FusedFamily& family_;
  std::array<std::vector<std::string_view>, kDTypes.size()> kinds_;  ///< by dtype
};

}  // namespace hone
