// AxisVerifier: reductions of one extent against the reference in higher precision.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/families/reduce/reduce_verifier.h"

namespace hone {

class AxisFamily;

/// Verifies all outputs of small problems, and runs of neighbouring ones of large problems. `family` must outlive it.
class AxisVerifier final : public ReduceInputs {
 public:
  explicit AxisVerifier(const AxisFamily& family) : family_(family) {}

  std::vector<Problem> verified_problems(const Problem& problem) const override;
  std::vector<ElementRange> verified_parts(const Problem& problem, int buffer) const override;
  std::string verify(const Problem& problem, const Candidate& candidate,
                     std::span<const std::vector<std::byte>> patterns,
                     std::span<const std::vector<std::byte>> outputs) const override;

 private:
  const AxisFamily& family_;
};

}  // namespace hone
