// PartialsVerifier: combined partials against a fold over ranks in long double.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hone/verifier.h>

namespace hone {

class PartialsVerifier final : public Verifier {
 public:
  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;
  std::string verify(const Problem& problem, const Candidate& candidate, ArrayBytes patterns,
                     ArrayBytes outputs) const override;
};

}  // namespace hone
