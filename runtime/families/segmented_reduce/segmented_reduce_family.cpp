#include <hone/reduce_spec.h>

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include <hone/error.h>

#include "kernel_templates/segments_arguments.h"
#include "runtime/families/counts.h"
#include "runtime/families/reduce/canonical_kernels.h"
#include "runtime/families/reduce/reduction_family.h"
#include "runtime/families/reduce/reduce_verifier.h"
#include "runtime/families/segmented_reduce/segment_offsets.h"
#include "runtime/families/segmented_reduce/segmented_policy.h"

namespace hone {
namespace {

constexpr int kPackBytes = 16;
constexpr std::int32_t kFewestThreads = 64;
constexpr int kJoinThreads = 1024;

/// The memory latencies in which a block scans as many partials as it has threads: 2^24 f32 in 4096 segments by 256
/// threads take 0.9 to 4.2 µs longer with the last block than with a second kernel of 1024 threads, in 396 to 1188
/// blocks (H100, CUDA 13.0, 2026-11-25).
constexpr double kCombiningLatencies = 1.4;

/// Static shared memory that leaves room for several blocks.
constexpr std::int64_t kMostTileBytes = 24 << 10;

/// Each may take a register of its own.
constexpr int kMostBytesOfSmallElements = 64;

/// The dtype of the offsets: what the two families differ in.
DType offsets_of(const Problem& problem) {
  return problem.family == &segmented_reduce_family(DType::i32) ? DType::i32 : DType::i64;
}

/// A policy on a problem.
struct Layout : SegmentedPolicy {
  const Problem& problem;
  ReduceSpec spec = reduce_spec_of(problem);
  std::int64_t segments = problem.extents[0], elements = problem.extents[1], element = element_bytes(problem);
  std::int64_t lane_elements = thread_bytes / element;  ///< of a tile
  std::int64_t tile_bytes = std::int64_t{block_threads} * thread_bytes;
  std::int64_t tiles;  ///< of the grid-stride loop

  Layout(const Problem& of, const Policy& policy) : SegmentedPolicy(policy.as<SegmentedPolicy>()), problem(of) {
    const std::int64_t items = is_merged() ? segments + elements : segments;
    const std::int64_t tile_items = is_merged() ? merged_elements() : block_threads / group_threads();
    tiles = at_least_one(divide_up(items, tile_items));
  }

  /// In the merged tiles of a block's warps.
  std::int64_t merged_elements() const { return block_threads * lane_elements; }

  /// The offsets that a lane has at a time: kRounds of segment_window.cuh. A tile with more ends is reduced in parts.
  std::int64_t lane_offsets() const { return at_least_one(lane_elements / 16); }

  /// The memory latencies of a merged tile, whose loads are under way while the tile before is reduced: the loads of
  /// offsets for each of its parts, what a lane does with each offset, and a few cycles an element. 2^20 segments of
  /// 2^16 and 2^20 f32 in all take 18.6 and 20.9 µs so, and 8.1 and 17.4 with threads to themselves (H100, CUDA 13.0,
  /// 2026-11-26).
  double merged_latencies() const {
    constexpr double kOfPart = 2.5, kOfOffset = 1.4, kOfElement = 0.02;
    return kOfPart * merged_parts() + kOfOffset * merged_offsets() + kOfElement * static_cast<double>(lane_elements);
  }
  double merged_offsets() const { return static_cast<double>(segments) / static_cast<double>(tiles * block_threads); }
  double merged_parts() const { return std::max(1.0, merged_offsets() / static_cast<double>(lane_offsets())); }

  bool is_direct() const { return !is_merged() && !is_in_tiles(); }
  /// The chunks that a warp of the canonical tree has in flight.
  std::int64_t chunks() const { return at_least_one(thread_bytes / kLaneChunkBytes); }
  /// Segment ends and elements are counted together.
  bool has_wide_index() const {
    return static_cast<double>(last_of(problem, 0)) + static_cast<double>(last_of(problem, 1)) > INT32_MAX;
  }
  std::size_t state() const { return state_bytes(spec, has_wide_index()); }
  std::size_t carry_bytes() const { return (has_wide_index() ? 8 : 4) + 2 * state(); }
  std::int64_t grid(std::int64_t max_blocks) const { return std::min(max_blocks, tiles); }

  /// Static, of a tile in shared memory. Merged tiles are of a warp: for each lane its elements, a word of ends, and
  /// the States of its elements (SegmentTiles::Shared).
  std::int64_t smem_bytes() const {
    if (is_direct()) return 0;
    if (!is_merged()) return tile_bytes;
    const auto odd_packs = [](std::int64_t bytes) { return (divide_up(bytes, kPackBytes) | 1) * kPackBytes; };
    const std::int64_t of_states = odd_packs(lane_elements * static_cast<std::int64_t>(state()));
    return block_threads * (odd_packs(thread_bytes) + 4 + of_states);
  }

  /// Beside the tiles: what each warp leaves to its block, a state and a flag of each in the scan over them, and some
  /// words of the ticket.
  std::int64_t scan_smem_bytes() const {
    return is_merged() ? block_threads / 32 * static_cast<std::int64_t>(8 + carry_bytes() + state()) + 64 : 0;
  }

  /// How many loads wait for each other in the longest of the segments that are measured.
  double loads_of_longest() const {
    // 12.5 ns an element from shared memory: of a thread's elements one load's latency takes so many. 2^20 segments of
    // 2^20 f32, of which the longest has 1290 and a thread to itself, take 17.7 µs (H100, CUDA 13.0, 2026-11-25).
    constexpr double kElementsPerLatency = 44;
    if (segments == 0) return 0;
    const auto all = static_cast<double>(elements);
    const double mean = all / static_cast<double>(segments);
    const double longest = std::min(mean * segment_offsets::longest_of_mean(segments), all);
    const double bytes = longest * static_cast<double>(element);
    if (!is_in_tiles()) return bytes / (group_threads() * thread_bytes);
    return bytes / static_cast<double>(tile_bytes) + longest / group_threads() / kElementsPerLatency;
  }

  Reason is_valid(const DeviceFacts& facts) const {
    const bool is_tree = is_canonical(problem);
    return first_reason(  // the ends of a lane's elements are bits of one word
        {check_blocks(facts, block_threads),
         reason_if(is_merged() && lane_elements > 32, "a lane of a merged tile has at most 32 elements"),
         check_static_smem(smem_bytes() + scan_smem_bytes()),
         reason_if(is_tree && !is_direct(), "a segment of the canonical tree is a warp's or a block's"),
         reason_if(is_tree && has_too_many_values(problem, chunks(), kPackBytes),
                   "a warp folds at most 32 values of a lane at once")});
  }

  Unit unit() const {
    const OperationSource op = operation_source(spec, has_wide_index());
    const bool is_tree = is_canonical(problem);
    const std::string_view division = is_tree         ? "CanonicalSegments"
                                      : is_merged()   ? "MergedSegments"
                                      : is_in_tiles() ? "StagedSegments"
                                                      : "DirectSegments";
    Unit unit;
    unit.source = fmt::format(
        "{}#include \"{}\"\n\n"
        "using Op = {};\n"
        "using Arrays = hone::Segments<Op, {}, {}, {}>;\n"
        "using Kernel = hone::{}<Op, Arrays, {}, {}>;\n"
        "static_assert(sizeof(hone::Carry<Op>) == {} && hone::kWorkspaceHeaderBytes == {} &&\n"
        "              hone::kPackBytes == {}, \"host and device disagree on the policy\");\n",
        op.includes, is_tree ? "canonical_segments.cuh" : "segmented_reduce.cuh",
        is_tree ? fmt::format("hone::Canonical<{}>", op.type) : op.type, info(offsets_of(problem)).cuda_name,
        info(spec.result_dtype()).cuda_name, info(spec.op).outputs, division, block_threads,
        is_tree ? chunks() : thread_bytes / kPackBytes, carry_bytes(), kWorkspaceHeaderBytes, kPackBytes);
    if (is_merged())
      unit.source += fmt::format("static_assert(Kernel::kTileElements == {} && Kernel::kTileBytes == {},\n"
                                 "              \"host and device disagree on the tile\");\n",
                                 merged_elements(), smem_bytes());

    const std::string argument = joins_in_second_kernel() ? "hone::Grid::publish"
                                 : is_merged()            ? "hone::Grid::last_block"
                                                          : std::to_string(group_threads());
    unit.entries = {kernel_entry(fmt::format("Kernel::reduce<{}>", argument), block_threads, min_blocks)};
    if (joins_in_second_kernel())
      unit.entries.push_back(
          kernel_entry(fmt::format("hone::combine_shares<Op, Arrays, {}>", kJoinThreads), kJoinThreads));
    return unit;
  }

  WorkShape shape() const {
    WorkShape shape{.tiles = tiles,
                    .launches = joins_in_second_kernel() ? 2 : 1,
                    .uses_last_block_ticket = is_merged() && !joins_in_second_kernel()};
    const std::int64_t bytes_of_tile = at_least_one(problem.family->bytes_moved(problem) / tiles);
    if (is_merged()) {
      shape.bytes_in_flight_per_block = bytes_of_tile;
      shape.round_latencies = merged_latencies();
      // Each part after the first goes through the tile again: 2^20 segments of an element take 21 to 27 µs where
      // latencies alone let expect 12 to 16 (H100, CUDA 13.0, 2026-11-26).
      constexpr double kInstructionsOfPart = 700;
      shape.instructions_per_byte = kInstructionsOfPart * (merged_parts() - 1) * block_threads /
                                    static_cast<double>(bytes_of_tile);
      shape.combining_latencies = kCombiningLatencies;
      if (joins_in_second_kernel()) shape.combining_threads = kJoinThreads;
      return shape;
    }
    // Short segments have less under way than threads could load. Offsets are loaded before elements; a tile in shared
    // memory has two barriers as well.
    shape.bytes_in_flight_per_block = std::min(bytes_of_tile, tile_bytes);
    shape.round_latencies = is_in_tiles() ? 4 : 2;
    shape.critical_path_loads = loads_of_longest();
    return shape;
  }

  std::size_t workspace_bytes(std::int64_t max_blocks) const {
    return is_merged() ? kWorkspaceHeaderBytes + static_cast<std::size_t>(max_blocks) * carry_bytes() : 0;
  }

  void encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace, LaunchList& launches) const {
    const SegmentsArguments arguments{.in = buffers[0],
                                      .offsets = buffers[1],
                                      .out = buffers[2],
                                      .workspace = workspace,
                                      .segments = static_cast<std::uint64_t>(segments),
                                      .blocks = static_cast<unsigned>(grid(max_blocks))};
    add_launch(launches, arguments.blocks, block_threads, arguments);
    if (joins_in_second_kernel()) add_launch(launches, 1, kJoinThreads, arguments).entry = 1;
  }

  /// Upper bounds: an element goes through its lane's elements and the scan of a tile, or through the tiles in which no
  /// segment ends; what the warp has of the segment through another tile, and the shares of warps and of blocks through
  /// a scan each.
  std::int64_t longest_chain(std::int64_t max_blocks) const {
    const std::int64_t threads = group_threads();
    const std::int64_t levels = 7 + 10 + thread_bytes / kPackBytes + 1;  // of a tile, of a block, and the ends
    if (is_in_tiles()) {
      const std::int64_t tile = (tile_bytes - kPackBytes) / element;
      return divide_up(tile, threads) + elements / tile + 2 + levels;
    }
    if (is_direct()) return elements / (threads * lane_elements) + levels;
    const std::int64_t rounds = (segments + elements) / grid(max_blocks) / (threads * lane_elements) + 1;
    const std::int64_t of_warp = 5 + 3, of_block = of_warp + 32;  // scans
    return levels + rounds + 2 * (lane_elements + of_warp) + of_warp + of_block + grid(max_blocks) / block_threads + 1;
  }
};

struct View : PolicyView<Layout> {
  using PolicyView::PolicyView;

  double segment_bytes = middle(1) / std::max(1.0, middle(0)) * static_cast<double>(element);  ///< of the mean one
  double thread_elements = segment_bytes / static_cast<double>(element) / group_threads();
  double group_load = static_cast<double>(group_threads()) * thread_bytes;

  double middle(std::size_t extent) const {
    return 0.5 * static_cast<double>(at_least_one(first_of(problem, extent)) + last_of(problem, extent));
  }

  /// True if a block has so few threads though twice as many would have shared memory enough.
  bool is_small_block() const {
    return block_threads == kFewestThreads && !(is_merged() && 2 * smem_bytes() > kMostStaticSmemBytes);
  }
};

constexpr PruneRule<View> kNoSmallBlocks{"blocks of 64 threads are for wide States", kNotMeasured,
                                         [](const View& v) { return v.is_small_block(); }};

/// The rules for policies of the canonical tree.
constexpr std::array<PruneRule<View>, 4> kCanonicalRules{{
    kNoLaunchBounds<View, MinBlocks::unset>,
    kNoSmallBlocks,
    {"a warp loads a chunk at once, at least", kNotMeasured,
     [](const View& v) { return v.thread_bytes < kLaneChunkBytes; }},
    {"segments are shorter than what their threads load at once", kNotMeasured,
     [](const View& v) {
       const bool has_fewer = v.thread_bytes > kLaneChunkBytes || v.scope == Scope::block;
       return has_fewer && v.group_load >= 2 * v.segment_bytes;
     }},
}};

constexpr std::array<PruneRule<View>, 9> kPruneRules{{
    kNoLaunchBounds<View, MinBlocks::unset>,
    kNoSmallBlocks,
    {"so many bytes of small elements are more than the registers hold", kNotMeasured,
     [](const View& v) { return v.element <= 2 && v.thread_bytes > kMostBytesOfSmallElements; }},
    {"tiles leave shared memory for too few blocks", "101.1 % (H100, prune_rules)",
     [](const View& v) { return v.is_in_tiles() && v.smem_bytes() > kMostTileBytes; }},
    {"a thread has too many elements of a segment, one after the other", "27 times as slow (H100, prune_rules)",
     [](const View& v) { return v.is_in_tiles() && v.thread_elements > 64; }},
    {"most threads of a segment have no element",
     "a thread has no other to share it with: 2^20 segments of 2^16 f32 by one each take 8.8 µs, else 23.4 (H100, CUDA "
     "13.0, 2026-11-25)",
     [](const View& v) { return v.is_in_tiles() && v.group_threads() > 1 && v.thread_elements < 0.25; }},
    {"much more is loaded at once than a segment has", "311.1 % (H100, prune_rules)",
     [](const View& v) { return v.is_direct() && v.segment_bytes < v.group_load / 8; }},
    {"segments are too long for a warp", kNotMeasured,
     [](const View& v) { return v.is_direct() && v.scope == Scope::warp && v.segment_bytes > 256 * v.group_load; }},
    {"the loads of a thread of less than 128 bytes, and those into shared memory, are in flight in any case",
     "NVRTC of CUDA 13.0, sm_90, 2026-11-24, 8 pairs of units of f32: min_blocks=1 brings 9 loads in flight to 16 for "
     "128 bytes of direct segments (2 of 2), 3 to 4 for 16 bytes (2 of 3). 1024 "
     "segments of 2^24 floats by the best policies with unset and 1: 100.0, 107.6 % (H100, parameter_effects_shapes)",
     [](const View& v) { return v.min_blocks == MinBlocks::one && (!v.is_direct() || v.thread_bytes < 128); }},
}};

Reason pruned(const View& v) {
  return is_canonical(v.problem) ? pruned_by(kCanonicalRules, v) : pruned_by(kPruneRules, v);
}

/// Extents {segments, elements, 1}.
class SegmentsFamily final : public LayoutFamily<LinesFamily, Layout, pruned> {
 public:
  /// `offsets`: i32 or i64.
  explicit SegmentsFamily(DType offsets)
      : LayoutFamily({.name = offsets == DType::i32 ? "reduce_segments" : "reduce_segments_i64",
                      .space = SegmentedPolicy::space(),
                      .extent_names = {"segments", "elements"},
                      .kernels = {"segmented_reduce.cuh", "canonical_segments.cuh"}}),
        offsets_(offsets) {}

  std::vector<BufferSpec> buffers(const Problem& problem) const override {
    // Segments start anywhere: the alignment of the arrays is that of their elements.
    BufferSpec offsets = input("offsets", offsets_, problem.extents[0] + 1, bytes_of(offsets_));
    offsets.is_validated = true;
    return {input("in", problem.dtype, problem.extents[1], element_bytes(problem)), offsets,
            output("out", reduce_spec_of(problem).result_dtype(), problem.extents[0] * op_of(problem).outputs)};
  }

  std::string refuse_contents(const Problem& problem, int, std::span<const std::byte> contents) const override {
    return segment_offsets::fault(segment_offsets::Offsets(offsets_, contents), problem.extents[1]);
  }

  std::span<const std::string_view> input_kinds(const Problem& problem) const override {
    return segment_offsets::input_kinds(reduce_spec_of(problem));
  }
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override {
    const auto [segments, elements, one] = problem.extents;
    if (buffer == 1) return segment_offsets::make(kind, offsets_, segments, elements);
    return segment_offsets::elements(reduce_spec_of(problem), elements, kind);
  }

  std::vector<Problem> verified_problems(const Problem& problem) const override {
    // The small one is verified whole, so that each awkward element counts.
    constexpr std::int64_t kFewSegments = 1021, kFewElements = 40009;
    Problem small = problem;
    small.extents = {std::min(problem.extents[0], kFewSegments), std::min(problem.extents[1], kFewElements), 1};
    return {problem, smaller(smaller(problem, 0), 1), small};
  }

 private:
  std::string fault_of(const Problem& problem) const override {
    const auto [segments, elements, one] = problem.extents;
    if (problem.pitches != Pitches{}) return "segments have no pitch";
    if (offsets_ == DType::i32 && elements > std::numeric_limits<std::int32_t>::max())
      return "offsets of i32 cannot name all elements; pass offsets of i64";
    return first_fault({LinesFamily::fault_of(problem), size_fault("elements", elements, element_bytes(problem)),
                        size_fault("offsets and results", segments, 16)});
  }

  std::vector<ElementRange> verified_lines(const Problem& problem) const override {
    return segment_offsets::verified(problem.extents[0], problem.extents[1]);
  }
  std::function<Line(std::int64_t)> lines(const Problem&, ArrayBytes patterns) const override {
    return [offsets = segment_offsets::Offsets(offsets_, patterns[1])](std::int64_t segment) {
      return Line{.elements = offsets[segment + 1] - offsets[segment], .first = offsets[segment]};
    };
  }

  DType offsets_;
};

}  // namespace

const ParameterSpace& SegmentedPolicy::space() {
  using P = SegmentedPolicy;
  static const auto& space = never_destroyed(space_of<P>(
      PolicyField{&P::scope, scope_parameter({Scope::grid, Scope::warp, Scope::block})},
      PolicyField{&P::combine,
                  combine_parameter({Combine::last_block, Combine::second_kernel}).only_if("scope", {Scope::grid})},
      PolicyField{&P::threads_per_segment,
                  ordinal("threads_per_segment", {1, 4, 16, 32}).only_if("scope", {Scope::warp})},
      PolicyField{&P::block_threads, ordinal("block_threads", {kFewestThreads, 128, 256, 512})},
      PolicyField{&P::thread_bytes, ordinal("thread_bytes", {16, 32, 64, 128})},
      PolicyField{&P::min_blocks, min_blocks_parameter({MinBlocks::unset, MinBlocks::one})}));
  return space;
}

const KernelFamily& segmented_reduce_family(DType offsets) {
  static const auto& narrow = never_destroyed<SegmentsFamily>(DType::i32);
  static const auto& wide = never_destroyed<SegmentsFamily>(DType::i64);
  if (offsets != DType::i32 && offsets != DType::i64)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("offsets of segments are i32 or i64, not {}",
                            static_cast<std::size_t>(offsets) < kDTypes.size() ? info(offsets).name : "unknown"));
  return offsets == DType::i32 ? narrow : wide;
}

Problem segmented_reduce_problem(const ReduceSpec& spec, DType offsets, std::int64_t segments, std::int64_t elements) {
  Problem problem = reduce_problem(spec, 0);
  problem.family = &segmented_reduce_family(offsets);
  problem.alignment = kMaxAlignment;
  problem.extents = {segments, elements, 1};
  return problem;
}

}  // namespace hone
