// CopyVerifier: exact checks of copies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hone/verifier.h>

namespace hone {

/// Verifies random elements bit by bit: all of a small array, both ends and pieces in between of a large one.
class CopyVerifier final : public Verifier {
 public:
  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;
  std::vector<Problem> verified_problems(const Problem& problem) const override;
  std::vector<ElementRange> verified_parts(const Problem& problem, int buffer) const override;
  std::string verify(const Problem& problem, const Candidate& candidate,
                     std::span<const std::vector<std::byte>> patterns,
                     std::span<const std::vector<std::byte>> outputs) const override;
};

}  // namespace hone
