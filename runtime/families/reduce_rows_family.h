// The reduce_rows family: each row of a matrix to one value, or two.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "runtime/families/axis_family.h"

namespace hone {

/// A Policy, decoded: who serves a row.
struct RowsPolicy {
  enum class Way {
    lanes,    ///< `lanes` neighbouring threads of a warp
    block,    ///< a block
    cluster,  ///< `cluster_blocks` blocks
    split,    ///< as many blocks as there are for it, and a second kernel
    staged,   ///< `lanes` threads, from a copy of many rows in shared memory
  };

  int block_threads;
  int unroll;  ///< packs that a thread loads at once, of each row
  int rows;    ///< rows that a thread takes at once
  Way way;
  int lanes = 0;
  int cluster_blocks = 1;

  explicit RowsPolicy(const Policy& policy);
};

/// Extents {rows, columns, 1}.
class ReduceRowsFamily final : public AxisFamily {
 public:
  ReduceRowsFamily();

  std::string_view name() const override { return "reduce_rows"; }
  std::span<const std::string_view> extent_names() const override {
    static constexpr std::array<std::string_view, 2> kExtentNames{"rows", "columns"};
    return kExtentNames;
  }
  int version() const override { return 1; }
  const ParameterSpace& space() const override { return space_; }
  std::string reject(const Problem& problem, const Policy& policy, const DeviceFacts& facts) const override;
  Unit unit(const Problem& problem, const Policy& policy) const override;
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::size_t workspace_bytes(const Problem& problem, const Candidate& candidate) const override;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;

 protected:
  AxisLayout layout(const Problem& problem) const override;
  std::string_view row_length_name() const override { return "columns"; }
  std::size_t row_extent() const override { return 1; }
  std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const override;

 private:
  ParameterSpace space_;
};

}  // namespace hone
