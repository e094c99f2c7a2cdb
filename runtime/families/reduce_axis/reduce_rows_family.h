// The reduce_rows family: each row of a matrix to one value, or two.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "runtime/families/reduce_axis/axis_family.h"
#include "runtime/families/work_division.h"

namespace hone {

/// The policies of reductions over rows. A grid combines the parts of a row in a second kernel.
struct RowsPolicy {
  std::int32_t block_threads = 256;
  Scope scope = Scope::block;        ///< of a row
  std::int32_t threads_per_row = 0;  ///< of a warp; 0: more than a warp
  Staging staging = Staging::direct;
  std::int32_t unroll = 1;           ///< packs that a thread loads at once, of each row
  std::int32_t rows_per_thread = 1;  ///< that a thread takes at once
  std::int32_t cluster_blocks = 1;
  MinBlocks min_blocks = MinBlocks::one;

  bool is_staged() const { return staging == Staging::shared; }
  bool is_direct_warp() const { return scope == Scope::warp && !is_staged(); }

  static const ParameterSpace& space();
};

/// Extents {rows, columns, 1}.
class ReduceRowsFamily final : public AxisFamily {
 public:
  std::string_view name() const override { return "reduce_rows"; }
  std::span<const std::string_view> extent_names() const override {
    static constexpr std::array<std::string_view, 2> kExtentNames{"rows", "columns"};
    return kExtentNames;
  }
  int version() const override { return 1; }
  std::span<const SourceFile> sources() const override;
  const ParameterSpace& space() const override { return RowsPolicy::space(); }
  std::string is_valid(const ProblemClass& problem_class, const Policy& policy,
                       const DeviceFacts& facts) const override;
  std::string prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override;
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::size_t workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const override;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;

 protected:
  AxisLayout layout(const Problem& problem) const override;
  std::string_view row_length_name() const override { return "columns"; }
  std::size_t row_extent() const override { return 1; }
  std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const override;
};

}  // namespace hone
