// ReduceLayout: the policies of reductions of an array, and what they make of a problem.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernel_templates/reduce_arguments.h"
#include "runtime/families/reduce/canonical_kernels.h"
#include "runtime/families/reduce/reduction_family.h"

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

  /// True if blocks leave their partials in the workspace.
  bool uses_workspace() const { return finish == Finish::last_block || finish == Finish::second_kernel; }

  static const ParameterSpace& space() {
    using P = ReducePolicy;
    static const auto& space = never_destroyed(space_of<P>(
        PolicyField{&P::block_threads, ordinal("block_threads", {128, 256, 512, 1024})},
        PolicyField{&P::vector_bytes, ordinal("vector_bytes", {16, 4, 8, 32, 2, 1})},
        PolicyField{&P::unroll, ordinal("unroll", {1, 2, 4, 8})},
        PolicyField{&P::tail, tail_parameter({Tail::warp, Tail::shared})},
        PolicyField{&P::finish, categorical("finish", {"one_block", "cluster", "last_block", "second_kernel"})},
        PolicyField{&P::cluster_blocks,
                    ordinal("cluster_blocks", {8, 16}).only_if("finish", {Finish::cluster}).otherwise(1)},
        PolicyField{&P::min_blocks,
                    min_blocks_parameter({MinBlocks::one, MinBlocks::unset, MinBlocks::three_quarters})}));
    return space;
  }
};

/// A policy on a problem.
struct ReduceLayout : ReducePolicy {
  const Problem& problem;
  const ReductionFamily& family = static_cast<const ReductionFamily&>(*problem.family);
  std::int64_t inputs = family.inputs(problem);  ///< arrays
  /// The bytes that a thread loads before it combines any.
  std::int64_t thread_bytes = unroll * (is_canonical(problem) ? kLaneChunkBytes : std::int64_t{vector_bytes});
  std::int64_t array_bytes = problem.extents[0] * element_bytes(problem);
  std::int64_t tiles = at_least_one(divide_up(array_bytes, tile_bytes()));

  ReduceLayout(const Problem& of, const Policy& policy) : ReducePolicy(policy.as<ReducePolicy>()), problem(of) {}

  std::int64_t partial_bytes() const { return static_cast<std::int64_t>(family.partial_bytes(problem)); }
  std::int64_t tile_bytes() const { return block_threads * thread_bytes; }
  std::int64_t grid(std::int64_t max_blocks) const {
    return cluster_blocks > 1 ? cluster_blocks : std::min(max_blocks, tiles);
  }

  /// The widest packs that the alignment allows: two arrays that are out of step cannot both be peeled.
  std::int64_t widest_vector_bytes() const {
    constexpr std::int64_t kWidest = 32;
    return inputs == 1 ? kWidest : std::max<std::int64_t>(problem.alignment, element_bytes(problem));
  }

  /// True if tiles begin with a line, a multiple of 256 bytes: in arrays of 128 MiB and more. Shorter ones gain less
  /// than 1 %, and canonical trees do not depend on addresses.
  bool is_long() const {
    constexpr std::int64_t kLongBytes = 1 << 27;
    return !is_canonical(problem) && first_of(problem, 0) >= kLongBytes / element_bytes(problem);
  }

  /// The division of a canonical tree.
  Spans spans() const {
    if (uses_workspace()) return Spans::of(tiles, most_partials(block_threads));
    return Spans::of(tiles, finish == Finish::one_block ? kMostSpanRounds : cluster_blocks);
  }

  Reason is_valid(const DeviceFacts& facts) const {
    constexpr int kNarrowestLdg256 = 100;  // compute capability × 10 from which a load has 32 bytes
    const bool has_wide_loads = is_host(facts) || facts.compute_capability >= kNarrowestLdg256;
    const bool is_tree = is_canonical(problem);
    // On the host device the kernels of a module have their shared memory side by side.
    const bool has_two_tails = is_host(facts) && finish == Finish::second_kernel;
    const std::int64_t shared_tails = tail != Tail::shared ? 0 : has_two_tails ? 2 : 1;
    return first_reason(
        {check_blocks(facts, block_threads, cluster_blocks),
         reason_if(min_blocks == MinBlocks::three_quarters && block_threads > 512,
                   "1536 threads hold one block: that is min_blocks=1"),
         reason_if(vector_bytes < element_bytes(problem), "vectors are narrower than an element"),
         reason_if(vector_bytes < 4 && widest_vector_bytes() >= 4, "vectors are narrower than a word"),
         reason_if(vector_bytes > widest_vector_bytes(), "vectors are wider than the arrays are aligned alike"),
         reason_if(vector_bytes > static_cast<int>(kMaxAlignment) && !has_wide_loads,
                   "vectors are wider than a load of the device"),
         reason_if(is_tree && vector_bytes < 4 && vector_bytes > element_bytes(problem),
                   "vectors of several elements are narrower than a word"),
         reason_if(is_tree && tail != Tail::warp, "the canonical tree is made by warp shuffles"),
         reason_if(is_tree && has_too_many_values(problem, unroll, vector_bytes),
                   "a warp folds at most 32 values of a lane at once"),
         check_static_smem(shared_tails * partial_bytes() * block_threads)});
  }

  Unit unit() const { return unit(is_long()); }
  Unit unit(bool reads_lines) const {
    const OperationSource op = family.operation(problem);
    const std::string parameters =
        fmt::format("Op, hone::{}, hone::Outputs<{}>, {}, {}, {}", inputs == 2 ? "TwoArrays" : "OneArray",
                    output_types(), block_threads, vector_bytes, unroll);
    Unit unit;
    unit.source = op.includes;
    if (is_canonical(problem))
      unit.source += fmt::format(
          "#include \"canonical_reduce.cuh\"\n\n"
          "using Op = hone::Canonical<{}>;\n"
          "using Kernel = hone::CanonicalReduce<{}>;\n",
          op.type, parameters);
    else
      unit.source += fmt::format(
          "#include \"reduce.cuh\"\n\n"
          "using Op = {};\n"
          "using Kernel = hone::Reduce<{},\n"
          "                            hone::Tail::{}>;\n",
          op.type, parameters, tail_parameter[tail]);
    unit.source += fmt::format(
        "static_assert(Kernel::kTileBytes == {} && sizeof(Op::State) == {} &&\n"
        "              hone::kWorkspaceHeaderBytes == {}, \"host and device disagree on the policy\");\n",
        tile_bytes(), partial_bytes(), kWorkspaceHeaderBytes);

    const std::string_view grid = finish == Finish::last_block      ? "last_block"
                                  : finish == Finish::second_kernel ? "publish"
                                                                    : "none";
    unit.entries = {kernel_entry(fmt::format("Kernel::reduce<hone::Grid::{}, {}{}>", grid, cluster_blocks,
                                             reads_lines ? ", true" : ""),
                                 *this)};
    if (finish == Finish::second_kernel) unit.entries.push_back(kernel_entry("Kernel::finish", *this));
    return unit;
  }

  WorkShape shape() const {
    // Warps that no chunk of a short array is left for load nothing. The sum of 4096 f16, which are 4 chunks, takes 4
    // warps 1.36 µs in a graph, and 16 warps 1.38 (H100, CUDA 13.0, 2026-11-27).
    std::int64_t loading_threads = block_threads;
    if (is_canonical(problem))
      loading_threads = std::min(loading_threads, 32 * at_least_one(divide_up(array_bytes, unroll * kChunkBytes)));
    WorkShape shape{.tiles = tiles,
                    .bytes_in_flight_per_block = loading_threads * thread_bytes * inputs,
                    .loading_threads = static_cast<int>(loading_threads),
                    .one_block = finish == Finish::one_block || cluster_blocks > 1,
                    .launches = finish == Finish::second_kernel ? 2 : 1,
                    .uses_last_block_ticket = finish == Finish::last_block,
                    .instructions_per_byte =
                        family.instructions(problem) / static_cast<double>(element_bytes(problem))};
    if (!is_canonical(problem)) return shape;
    if (uses_workspace()) add_folds(shape, unroll, element_bytes(problem));
    // Without this, the sum of 2^20 f16 by a cluster with eight chunks a warp would take 3.6 µs. It takes 4.1 (H200).
    if (cluster_blocks > 1) shape.pipeline_fill_latencies = fold_latencies(unroll, element_bytes(problem)) / 4;
    return shape;
  }

  std::size_t workspace_bytes(std::int64_t max_blocks) const {
    if (!uses_workspace()) return 0;
    Problem largest = problem;
    largest.extents[0] = std::min(last_of(problem, 0), kMostBytes / element_bytes(problem));
    const std::int64_t partials =
        is_canonical(problem) ? ReduceLayout(largest, Policy::of<ReducePolicy>(*this)).spans().count : max_blocks;
    return kWorkspaceHeaderBytes + static_cast<std::size_t>(partials * partial_bytes());
  }

  void encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace, LaunchList& launches) const {
    ReduceArguments arguments{.in = {},
                              .n = static_cast<std::uint64_t>(problem.extents[0]),
                              .workspace = workspace,
                              .out = {},
                              .partials = static_cast<unsigned>(grid(max_blocks))};
    if (is_canonical(problem)) {
      const Spans division = spans();
      arguments.partials = static_cast<unsigned>(division.count);
      arguments.run_levels = static_cast<unsigned>(division.levels);
    }
    std::copy_n(buffers.begin(), inputs, arguments.in);
    std::copy(buffers.begin() + inputs, buffers.end(), arguments.out);
    add_launch(launches, grid(max_blocks), block_threads, arguments, 0, cluster_blocks);
    if (finish == Finish::second_kernel) add_launch(launches, 1, block_threads, arguments, 1);
  }

  /// An element is combined in the tree of its tile, from tile to tile, in the last tile, with the ends, in two block
  /// trees, and over the partials of the blocks.
  std::int64_t longest_chain(std::int64_t max_blocks) const {
    const std::int64_t rounds = divide_up(tiles, grid(max_blocks));
    const std::int64_t tile_levels = 8;  // of 8 packs of 32 elements
    const std::int64_t block_levels = tail == Tail::warp ? 10 : block_threads / 32 + 32;
    return tile_levels + rounds + unroll + 1 + 2 * block_levels + grid(max_blocks) / block_threads + 1;
  }

 private:
  /// "float, long long"
  std::string output_types() const {
    std::string types;
    for (const BufferSpec& buffer : family.buffers(problem))
      if (!buffer.is_input) types += fmt::format("{}{}", types.empty() ? "" : ", ", info(buffer.dtype).cuda_name);
    return types;
  }
};

/// A pack takes a register for every 4 bytes, and small elements may take one each.
inline constexpr std::int64_t kMostBytesPerBlock = 64 * 1024, kMostCanonicalBytesPerBlock = 128 * 1024;
inline constexpr std::int64_t kMostBytesOfSmallElements = 64;  ///< of a thread, also where it has 42 registers

using ReduceView = PolicyView<ReduceLayout>;

inline constexpr std::array<PruneRule<ReduceView>, 5> kReduceRules{{
    {"the tile of a block is more than its registers hold", "ptxas of CUDA 13.0, sm_90, 2026-11: spills",
     [](const ReduceView& v) {
       if (is_canonical(v.problem)) return v.tile_bytes() > kMostCanonicalBytesPerBlock;
       return v.tile_bytes() > kMostBytesPerBlock ||
              (element_bytes(v.problem) <= 2 && v.thread_bytes > kMostBytesOfSmallElements);
     }},
    {"narrower vectors than there might be",
     "H100, CUDA 13.0, 2026-11-24, all valid policies of 6 sums (parameter_effects): the best with 4 bytes 0.6 to "
     "3.6 % behind, with 8 bytes 0.2 to 2.1; host, 2 cores, 2026-11: sum of 2^21 f32 2576 µs with 4 bytes, 1371 with "
     "16, 974 with 32. Not of 16-bit elements in the canonical tree, where they take fewer shuffles and registers: the "
     "sum of 2^24 f16 took 10.65 µs with 16 bytes, 10.3 with 4; f32 and f64 at most 1 % less (H200, CUDA 13.0, graphs, "
     "2026-11-29)",
     [](const ReduceView& v) {
       const bool is_tried = is_canonical(v.problem) && element_bytes(v.problem) <= 2;
       return !is_tried && v.vector_bytes < (v.inputs == 2 ? v.widest_vector_bytes() : kMaxAlignment);
     }},
    {"1536 threads on an SM leave each 42 registers, too few for the tile",
     "ptxas of CUDA 13.0, sm_90, 2026-11-24: of mean_variance 10 of 94 units spilled, of logsumexp f32 2 of 12",
     [](const ReduceView& v) {
       const bool converts = is_canonical(v.problem) && element_bytes(v.problem) <= 2;
       return v.min_blocks == MinBlocks::three_quarters &&
              (converts || v.thread_bytes > kMostBytesOfSmallElements);
     }},
    {"a warp would have more chunks of the canonical tree in flight than there are",
     "H100, CUDA 13.0, 2026-11-27, in graphs: the sum of 1024 f16, one chunk, by one chunk a warp 1.19 µs, by two 1.43",
     [](const ReduceView& v) {
       return is_canonical(v.problem) && v.unroll > at_least_one(divide_up(v.array_bytes, kChunkBytes));
     }},
    kNoLaunchBounds<ReduceView, MinBlocks::one>,
}};

using ReduceLayoutFamily = LayoutFamily<ReductionFamily, ReduceLayout, kReduceRules>;

}  // namespace hone
