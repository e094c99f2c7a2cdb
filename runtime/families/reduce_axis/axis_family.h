// AxisFamily: what the families have in common that reduce one extent of an array, each output by itself, with their
// policies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <hone/reduce_spec.h>

#include "kernel_templates/axis_arguments.h"
#include "runtime/families/counts.h"
#include "runtime/families/reduce/reduce_verifier.h"

namespace hone {

/// outer × reduced × inner, and where the elements are: neighbours along inner are neighbours in memory.
struct AxisLayout {
  std::int64_t outer = 0, reduced = 0, inner = 0;
  std::int64_t outer_stride = 0, reduced_stride = 0;  ///< in elements

  static AxisLayout of_rows(const Problem& problem);
  static AxisLayout of_columns(const Problem& problem);

  std::int64_t outputs() const { return outer * inner; }

  std::int64_t first_of(std::int64_t output) const { return output / inner * outer_stride + output % inner; }
};

/// The policies of reductions over rows. A grid combines the parts of a row in a second kernel.
struct RowsPolicy {
  std::int32_t block_threads = 256;
  Scope scope = Scope::block;        ///< of a row
  std::int32_t threads_per_row = 0;  ///< of a warp; 0: more than a warp
  Staging staging = Staging::direct;
  std::int32_t unroll = 1;           ///< packs that a thread loads at once, of each row
  std::int32_t rows_per_thread = 1;  ///< that a thread takes at once
  std::int32_t cluster_blocks = 1;
  Tail tail = Tail::warp;            ///< of a block
  MinBlocks min_blocks = MinBlocks::one;

  bool is_staged() const { return staging == Staging::shared; }
  /// Rows that a block takes at once, where lanes of a warp make an output.
  std::int64_t tile_rows() const { return block_threads / threads_per_row * rows_per_thread; }
  bool is_direct_warp() const { return scope == Scope::warp && !is_staged(); }

  static const ParameterSpace& space();
};

/// The policies of reductions over columns. A grid combines the parts of a column in a second kernel. Staged, whole
/// slices of reduced × inner are copied to shared memory; shifted, where rows begin anywhere, threads put each of their
/// packs together from two aligned ones.
struct ColumnsPolicy {
  std::int32_t block_threads = 256;
  std::int32_t threads_per_column = 1;  ///< of a block
  std::int32_t unroll = 2;              ///< packs that a thread loads at once
  Scope scope = Scope::block;           ///< of a column
  Staging staging = Staging::direct;
  MinBlocks min_blocks = MinBlocks::unset;

  /// Threads side by side.
  int lanes() const { return block_threads / threads_per_column; }
  bool is_staged() const { return staging == Staging::shared; }
  bool is_split() const { return scope == Scope::grid; }

  static const ParameterSpace& space();
};

/// The second extent is reduced. The elements of the last one that the family names lie side by side.
class AxisFamily : public LinesFamily {
 public:
  using LinesFamily::LinesFamily;

  std::int64_t bytes_moved(const Problem& problem) const final;
  std::vector<BufferSpec> buffers(const Problem& problem) const final;
  Rows rows(const Problem& problem, int array) const final;

  /// One less of each extent: where the last row ends early, rows that begin elsewhere, and a gap behind each row.
  std::vector<Problem> verified_problems(const Problem& problem) const final;

 protected:
  /// Runs of neighbouring outputs: the first, the last, those at the end of the pattern, where the odd elements are,
  /// and some in between. All of small problems.
  std::vector<ElementRange> verified_lines(const Problem& problem) const final;
  std::function<Line(std::int64_t)> lines(const Problem& problem, ArrayBytes patterns) const final;

 private:
  std::string fault_of(const Problem& problem) const final;
  std::uint32_t alignment_of_rows(const Problem& problem) const final;

  std::size_t row_extent() const { return extent_names().size() - 1; }

  /// The layout of a problem that was not refused.
  AxisLayout layout(const Problem& problem) const {
    return row_extent() == 1 ? AxisLayout::of_rows(problem) : AxisLayout::of_columns(problem);
  }
};

/// A Problem of `family`, without what the family would choose anyway. `row_bytes`: from one row to the next.
Problem axis_problem(const KernelFamily& family, const ReduceSpec& spec, const Extents& extents, std::int64_t pitch,
                     std::int64_t row_length, std::uint32_t alignment);

/// Returns true if every row begins with a whole pack.
inline bool is_aligned(const Problem& problem) { return problem.alignment >= kMaxAlignment; }

/// True if the State of a chunk of the canonical tree is more than the fold of its elements (kByChunk of
/// canonical_ops.cuh).
bool is_by_chunk(const Problem& problem);

/// sizeof of the operation's State. Indices count an output's elements.
std::size_t axis_state_bytes(const Problem& problem);

/// The includes, `Op`, `In`, `Out` and `Index` of a unit, and a check that host and device agree on the State.
std::string axis_prologue(const Problem& problem, std::string_view header);

/// A tile of whole slices, reduced × inner, that a block copies to shared memory (staged_reduce.cuh), where `lanes`
/// threads make an output.
struct StagedTile {
  const Problem& problem;
  int block_threads, lanes, packs;  ///< packs of a thread
  std::int64_t elements = bytes() / element_bytes(problem);

  std::int64_t bytes() const { return std::int64_t{block_threads} * packs * kMaxAlignment; }
  /// Slices of a tile. Reproducible rows are fewer than have room, where these are whole turns of all groups of lanes.
  std::int64_t slices(const AxisLayout& layout) const;
  std::int64_t tiles(const AxisLayout& layout) const;

  /// KernelFamily::is_valid() and prune().
  Reason is_valid() const;
  Reason prune() const;

  /// `Kernel` of a unit that begins with axis_prologue().
  std::string source(bool is_of_rows, int values) const;
  void add_launch(LaunchList& launches, const AxisLayout& layout, std::int64_t max_blocks,
                  std::span<void* const> buffers) const;

  /// LinesFamily::longest_chain().
  std::int64_t chain(const AxisLayout& layout) const { return 17 + layout.reduced / (8 * lanes); }
};

/// A block of the kernel that combines partials (partials.cuh): as large as those of the kernel ahead, whose places it
/// takes, and with as few outputs as leave enough blocks to go around.
struct CombiningBlock {
  int threads;
  int outputs;  ///< side by side; the other factor of the threads shares the parts of each

  CombiningBlock(int threads, std::int64_t all_outputs);
};

/// The entry of that kernel, for a unit that begins with axis_prologue().
std::string combining_entry(const CombiningBlock& block, int values);

/// Adds its launch, as the unit's second entry: each output has `parts` partials in the workspace.
void add_combining_launch(LaunchList& launches, const CombiningBlock& block, const AxisLayout& layout, unsigned parts,
                          const void* workspace, void* out);

}  // namespace hone
