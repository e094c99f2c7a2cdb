// ReductionFamily: what all families have in common that launch the templates of reduce.cuh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <hone/kernel_family.h>

#include "runtime/families/built_in_family.h"
#include "runtime/families/work_division.h"

namespace hone {

/// The policies of reductions. Launches always overlap (PDL), and loads have no cache hints: neither ever lost (H100
/// and H200, CUDA 13.0, 2026-11).
struct ReducePolicy {
  enum class Finish : std::int32_t { one_block, cluster, last_block, second_kernel };

  std::int32_t block_threads = 256;
  std::int32_t vector_bytes = 16;  ///< of a pack
  std::int32_t unroll = 1;         ///< packs that a thread loads before it combines any
  Tail tail = Tail::warp;
  Finish finish = Finish::last_block;
  std::int32_t cluster_blocks = 1;  ///< 8 or 16 where the blocks are one cluster
  MinBlocks min_blocks = MinBlocks::one;

  static const ParameterSpace& space();
};

/// The operation of a kernel, in the words of reduction.cuh.
struct OperationSource {
  std::string includes;  ///< of what `type` needs of kernel_templates or sources()
  std::string type;      ///< a C++ type, with `hone::` before its names
};

/// The alignment that a problem of one array has. An array is peeled up to its first whole pack, so what matters is
/// whether there is anything to peel.
std::uint32_t peeled_alignment(DType dtype, std::uint32_t alignment);

/// Extents {n, 1, 1}; one or two input arrays of n elements each, then the outputs.
class ReductionFamily : public BuiltInFamily {
 public:
  using BuiltInFamily::BuiltInFamily;

  std::string refuse(const Problem& problem) const override;
  Reason is_valid(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const final;
  Reason prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const final;
  Unit unit(const ProblemClass& problem_class, const Policy& policy) const final;
  WorkShape shape(const Problem& problem, const Policy& policy) const final;
  std::size_t workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const final;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const final;

  /// The most combinations that one element goes through: in the tree of its tile, from tile to tile, in the last tile,
  /// with the ends, in two block trees, and over the partials of the blocks.
  std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const;

 protected:
  /// 1, or 2 for operations on pairs. On the hit path: must not allocate.
  virtual int inputs(const Problem&) const { return 1; }

  /// Bytes of what one block has found: sizeof of the operation's State. On the hit path, too.
  virtual std::size_t partial_bytes(const Problem& problem) const = 0;

  virtual OperationSource operation(const Problem& problem) const = 0;

 private:
  /// The widest packs that the alignment allows: two arrays that are out of step cannot both be peeled.
  std::int64_t widest_vector_bytes(const Problem& problem) const;
  std::int64_t tiles_of(const Problem& problem, const ReducePolicy& policy) const;
  std::int64_t grid_of(const Problem& problem, const Candidate& candidate) const;
};

}  // namespace hone
