// The softmax family over rows: which threads serve a row, and how many of its packs they hold.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "runtime/families/softmax_base.h"

namespace hone {

/// A Variant of the softmax over rows, decoded.
struct SoftmaxRowVariant {
  enum class Way { group, tiles, block, cluster, chunks, pipeline };

  int group_lanes = 0;     ///< of a row, where it has less than a block; 0 otherwise
  int cluster_blocks = 1;  ///< of a row
  Way way = Way::block;
  int block_threads = 0;
  int packs = 0;           ///< in a thread's registers, of all its rows; of chunks, loads at once. 0: in shared memory
  int smem_kib = 0;        ///< of shared memory, at most, that packs are held in

  bool cuts_rows() const { return way == Way::chunks || way == Way::pipeline; }  ///< into chunks that are read twice

  explicit SoftmaxRowVariant(const Variant& variant);
};

/// Extents {rows, columns, 1}.
class SoftmaxFamily final : public SoftmaxBase {
 public:
  SoftmaxFamily();

  std::string_view name() const override { return "softmax"; }
  std::span<const std::string_view> extent_names() const override {
    static constexpr std::array<std::string_view, 2> kExtentNames{"rows", "columns"};
    return kExtentNames;
  }
  const ParameterSpace& space() const override { return space_; }
  std::string reject(const Problem& problem, const Variant& variant, const DeviceFacts& facts) const override;
  Unit unit(const Problem& problem, const Variant& variant) const override;
  WorkShape shape(const Problem& problem, const Variant& variant) const override;
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
