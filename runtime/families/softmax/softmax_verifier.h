// SoftmaxVerifier: results of the softmax families against the reference in higher precision.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hone/verifier.h>

namespace hone {

class SoftmaxBase;

/// Verifies all of a few rows, or the beginning, middle and end of long ones; over columns some rows of the first and
/// the last columns. `family` must outlive it.
class SoftmaxVerifier final : public Verifier {
 public:
  explicit SoftmaxVerifier(const SoftmaxBase& family) : family_(family) {}

  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;
  std::vector<Problem> verified_problems(const Problem& problem) const override;
  std::vector<ElementRange> verified_parts(const Problem& problem, int buffer) const override;
  std::string verify(const Problem& problem, const Candidate& candidate,
                     std::span<const std::vector<std::byte>> patterns,
                     std::span<const std::vector<std::byte>> outputs) const override;

 private:
  const SoftmaxBase& family_;
};

}  // namespace hone
