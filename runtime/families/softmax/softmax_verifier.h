// Verifiers of the softmax families: results against the reference in higher precision.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hone/verifier.h>

namespace hone {

class SoftmaxColumnsFamily;

/// The inputs and problems that both families are verified on.
class SoftmaxVerifier : public Verifier {
 public:
  std::span<const std::string_view> input_kinds(const Problem& problem) const final;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const final;
  std::vector<Problem> verified_problems(const Problem& problem) const final;
};

/// Verifies all of a few rows, or the beginning, middle and end of long ones.
class SoftmaxRowsVerifier final : public SoftmaxVerifier {
 public:
  std::vector<ElementRange> verified_parts(const Problem& problem, int buffer) const override;
  std::string verify(const Problem& problem, const Candidate& candidate,
                     std::span<const std::vector<std::byte>> patterns,
                     std::span<const std::vector<std::byte>> outputs) const override;
};

/// Verifies some rows of the first and the last columns. `family` must outlive it.
class SoftmaxColumnsVerifier final : public SoftmaxVerifier {
 public:
  explicit SoftmaxColumnsVerifier(const SoftmaxColumnsFamily& family) : family_(family) {}

  std::vector<ElementRange> verified_parts(const Problem& problem, int buffer) const override;
  std::string verify(const Problem& problem, const Candidate& candidate,
                     std::span<const std::vector<std::byte>> patterns,
                     std::span<const std::vector<std::byte>> outputs) const override;

 private:
  const SoftmaxColumnsFamily& family_;
};

}  // namespace hone
