// The reduce_columns family: the middle extent of three to one value, or two, for each pair of the others.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "runtime/families/axis_family.h"

namespace hone {

/// A Policy, decoded.
struct ColumnsPolicy {
  enum class Way {
    whole,      ///< a block reduces a tile of columns from the first row to the last
    split,      ///< as many blocks as there are for it share the rows, and a second kernel combines what they found
    staged,     ///< whole slices of reduced × inner are copied to shared memory
    realigned,  ///< whole, and where rows begin anywhere threads put each of their packs together from two
  };

  int block_threads;
  int sharing;  ///< threads that share an output
  int unroll;   ///< packs that a thread loads at once
  Way way;

  explicit ColumnsPolicy(const Policy& policy);

  /// Threads side by side.
  int lanes() const { return block_threads / sharing; }
};

/// Extents {outer, reduced, inner}.
class ReduceColumnsFamily final : public AxisFamily {
 public:
  ReduceColumnsFamily();

  std::string_view name() const override { return "reduce_columns"; }
  std::span<const std::string_view> extent_names() const override {
    static constexpr std::array<std::string_view, 3> kExtentNames{"outer", "reduced", "inner"};
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
  std::size_t row_extent() const override { return 2; }
  std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const override;

 private:
  ParameterSpace space_;
};

}  // namespace hone
