// The softmax family over columns: how many blocks share the rows of a tile of columns.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "runtime/families/softmax/softmax_base.h"
#include "runtime/families/softmax/softmax_verifier.h"
#include "runtime/families/work_division.h"

namespace hone {

/// The policies of the softmax over columns. A grid cuts columns into chunks that are read twice.
struct SoftmaxColumnPolicy {
  Scope scope = Scope::block;           ///< of a tile of columns
  std::int32_t cluster_blocks = 1;
  std::int32_t lanes = 32;              ///< threads side by side, a pack of columns each
  std::int32_t block_threads = 256;
  std::int32_t packs_per_thread = 1;    ///< rows that a thread holds; of chunks, loads at once

  bool in_chunks() const { return scope == Scope::grid; }
  /// Threads that share a column.
  std::int64_t row_lanes() const { return std::int64_t{block_threads / lanes} * cluster_blocks; }

  static const ParameterSpace& space();
};

/// Extents {outer, reduced, inner}; pitches between rows of `inner` elements.
class SoftmaxColumnsFamily final : public SoftmaxBase {
 public:
  std::string_view name() const override { return "softmax_columns"; }
  std::span<const std::string_view> extent_names() const override {
    static constexpr std::array<std::string_view, 3> kExtentNames{"outer", "reduced", "inner"};
    return kExtentNames;
  }
  const ParameterSpace& space() const override { return SoftmaxColumnPolicy::space(); }
  std::span<const SourceFile> sources() const override;
  std::string is_valid(const ProblemClass& problem_class, const Policy& policy,
                       const DeviceFacts& facts) const override;
  std::string prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override;
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::size_t workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const override;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;
  const Verifier& verifier() const override { return verifier_; }

  /// The most additions, rescalings included, that one weight goes through.
  std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const;

 private:
  SoftmaxColumnsVerifier verifier_{*this};
};

}  // namespace hone
