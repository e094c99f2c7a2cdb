// The reduce_columns family: the middle extent of three to one value, or two, for each pair of the others.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "runtime/families/reduce_axis/axis_family.h"
#include "runtime/families/work_division.h"

namespace hone {

/// The policies of reductions over columns. A grid combines the parts of a column in a second kernel. Staged, whole
/// slices of reduced × inner are copied to shared memory; shifted, where rows begin anywhere, threads put each of their
/// packs together from two aligned ones.
struct ColumnsPolicy {
  std::int32_t block_threads = 256;
  std::int32_t threads_per_column = 1;  ///< of a block
  std::int32_t unroll = 2;              ///< packs that a thread loads at once
  Scope scope = Scope::block;           ///< of a column
  Staging staging = Staging::direct;

  /// Threads side by side.
  int lanes() const { return block_threads / threads_per_column; }
  bool is_staged() const { return staging == Staging::shared; }
  bool is_split() const { return scope == Scope::grid; }

  static const ParameterSpace& space();
};

/// Extents {outer, reduced, inner}.
class ReduceColumnsFamily final : public AxisFamily {
 public:
  std::string_view name() const override { return "reduce_columns"; }
  std::span<const std::string_view> extent_names() const override {
    static constexpr std::array<std::string_view, 3> kExtentNames{"outer", "reduced", "inner"};
    return kExtentNames;
  }
  int version() const override { return 1; }
  std::span<const SourceFile> sources() const override;
  const ParameterSpace& space() const override { return ColumnsPolicy::space(); }
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
  std::size_t row_extent() const override { return 2; }
  std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const override;
};

}  // namespace hone
