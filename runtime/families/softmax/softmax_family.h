// The softmax family over rows: which threads serve a row, and how many of its packs they hold.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "runtime/families/softmax/softmax_base.h"

namespace hone {

/// Extents {rows, columns, 1}.
class SoftmaxFamily final : public SoftmaxBase {
 public:
  std::string_view name() const override { return "softmax"; }
  std::span<const std::string_view> extent_names() const override {
    static constexpr std::array<std::string_view, 2> kExtentNames{"rows", "columns"};
    return kExtentNames;
  }
  const ParameterSpace& space() const override;
  std::span<const SourceFile> sources() const override;
  std::string is_valid(const ProblemClass& problem_class, const Policy& policy,
                       const DeviceFacts& facts) const override;
  std::string prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override;
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::size_t workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const override;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;
  const Verifier& verifier() const override;
};

}  // namespace hone
