// ReduceVerifier: reductions against the reference in higher precision.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hone/verifier.h>

#include "runtime/families/reduce/reduction_family.h"

namespace hone {

/// Verifies all outputs of a problem whose operation is a ReduceOp. `family` must outlive it.
class ReduceVerifier final : public Verifier {
 public:
  explicit ReduceVerifier(const ReductionFamily& family) : family_(family) {}

  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;
  std::string verify(const Problem& problem, const Candidate& candidate,
                     std::span<const std::vector<std::byte>> patterns,
                     std::span<const std::vector<std::byte>> outputs) const override;

 private:
  const ReductionFamily& family_;
};

}  // namespace hone
