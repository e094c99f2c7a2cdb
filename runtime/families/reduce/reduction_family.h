// ReductionFamily: what all families have in common that launch the templates of reduce.cuh; and what all families of
// reductions ask of an operation.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <hone/reduce_spec.h>

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

class ReductionFamily;

/// A policy on a problem.
struct ReduceLayout : ReducePolicy {
  const Problem& problem;
  const ReductionFamily& family;
  std::int64_t inputs;  ///< arrays
  std::int64_t thread_bytes;  ///< that a thread loads before it combines any
  std::int64_t tiles;

  ReduceLayout(const Problem& problem, const Policy& policy);

  std::int64_t partial_bytes() const;
  std::int64_t tile_bytes() const { return block_threads * thread_bytes; }
  std::int64_t grid(std::int64_t max_blocks) const {
    return cluster_blocks > 1 ? cluster_blocks : std::min(max_blocks, tiles);
  }
  /// True if tiles begin with a line, a multiple of 256 bytes: in arrays of 128 MiB and more. Shorter ones gain less than
  /// 1 %, and canonical trees do not depend on addresses.
  bool is_long() const;
  /// The widest packs that the alignment allows: two arrays that are out of step cannot both be peeled.
  std::int64_t widest_vector_bytes() const;

  Reason is_valid(const DeviceFacts& facts) const;
  Unit unit() const { return unit(is_long()); }
  Unit unit(bool reads_lines) const;
  WorkShape shape() const;
  std::size_t workspace_bytes(std::int64_t max_blocks) const;
  void encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace, LaunchList& launches) const;

  /// The most combinations that one element goes through: in the tree of its tile, from tile to tile, in the last tile,
  /// with the ends, in two block trees, and over the partials of the blocks.
  std::int64_t longest_chain(std::int64_t max_blocks) const;
};

extern const std::array<PruneRule<PolicyView<ReduceLayout>>, 4> kReduceRules;

/// Extents {n, 1, 1}; one or two input arrays of n elements each, then the outputs.
class ReductionFamily : public LayoutFamily<BuiltInFamily, ReduceLayout, kReduceRules> {
 public:
  using LayoutFamily::LayoutFamily;

  std::string refuse(const Problem& problem) const override;
  bool is_served_by(const Problem& problem, const Policy& policy, const Unit& unit) const override;

  /// 1, or 2 for operations on pairs. On the hit path: must not allocate.
  virtual int inputs(const Problem&) const { return 1; }

  /// The instructions of an element (WorkShape::instructions_per_byte); 0: not known.
  virtual double instructions(const Problem&) const { return 0; }

  /// Bytes of what one block has found: sizeof of the operation's State. On the hit path, too.
  virtual std::size_t partial_bytes(const Problem& problem) const = 0;

  virtual OperationSource operation(const Problem& problem) const = 0;
};

inline const ReduceOpInfo& op_of(const Problem& problem) { return kReduceOps[problem.operation]; }

/// KernelFamily::arithmetic() of families of reductions: arrays, bytes of an element, accumulators and results.
std::string reduce_arithmetic(const ReduceSpec& spec);

/// The instructions of an element that are not hidden behind loads.
double reduce_instructions(const ReduceSpec& spec);

/// How the kernels spell an operation, with what it is instantiated for. Indices of elements have 32 or 64 bits.
OperationSource operation_source(const ReduceSpec& spec, bool has_wide_index);

/// `kernels` and the templates of all operations.
std::vector<std::string_view> with_operations(std::vector<std::string_view> kernels);

/// sizeof of its State.
std::size_t state_bytes(const ReduceSpec& spec, bool has_wide_index);

/// Why an operation is not defined for the dtypes of the spec; "" if it is.
std::string refuse_dtypes(const ReduceSpec& spec);

}  // namespace hone
