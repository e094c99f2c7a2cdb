// The softmax family over columns: how many blocks share the rows of a tile of columns.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "runtime/families/softmax_base.h"

namespace hone {

/// A Policy of the softmax over columns, decoded.
struct SoftmaxColumnPolicy {
  int cluster_blocks = 1;    ///< that share the rows of a tile
  bool in_chunks = false;    ///< many blocks do, in two launches
  int lanes = 0;             ///< packs of neighbouring columns in a tile
  int block_threads = 0;
  int packs = 0;             ///< rows that a thread holds; for chunks, loads at once

  explicit SoftmaxColumnPolicy(const Policy& policy);

  std::int64_t row_lanes() const { return std::int64_t{block_threads / lanes} * cluster_blocks; }
};

/// Extents {outer, reduced, inner}; pitches between rows of `inner` elements.
class SoftmaxColumnsFamily final : public SoftmaxBase {
 public:
  SoftmaxColumnsFamily();

  std::string_view name() const override { return "softmax_columns"; }
  std::span<const std::string_view> extent_names() const override {
    static constexpr std::array<std::string_view, 3> kExtentNames{"outer", "reduced", "inner"};
    return kExtentNames;
  }
  const ParameterSpace& space() const override { return space_; }
  std::string reject(const Problem& problem, const Policy& policy, const DeviceFacts& facts) const override;
  Unit unit(const Problem& problem, const Policy& policy) const override;
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::size_t workspace_bytes(const Problem& problem, const Candidate& candidate) const override;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;
  std::vector<ElementRange> verified_parts(const Problem& problem, int buffer) const override;
  std::string verify(const Problem& problem, const Candidate& candidate,
                     std::span<const std::vector<std::byte>> patterns,
                     std::span<const std::vector<std::byte>> outputs) const override;

 private:
  ParameterSpace space_;
};

}  // namespace hone
