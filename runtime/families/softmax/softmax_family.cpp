#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "runtime/families/softmax/canonical_softmax.h"
#include "runtime/families/softmax/softmax_row_layout.h"

namespace hone {
namespace {

/// The least shared memory that a policy names, in KiB.
constexpr int kLeastSmemKib = 48;

constexpr int kMostPacksPerBlock = 1024 * 6;

/// Rows of fewer bytes a block are no work for several blocks.
constexpr std::int64_t kLeastBytesPerBlock = 4096;

/// The memory latencies that the blocks of a cluster wait for each other in a row, and for each block more, where they
/// exchange by barriers: clusters of 4, 8 and 16 take 0.8, 1.1 and 1.7 µs longer in each of 40 to 60 rows than their
/// loads let expect (4096 rows of 2^16 f32; H100, CUDA 13.0, 2026-11-26). Receipts cost nothing more than the loads:
/// 1024 rows of 2^16 f32 by clusters of 4 (512 threads), 8 (256) and 16 (128) take 191, 181 and 181 µs (same GPU and
/// day).
constexpr double kExchangeLatencies = 0.5, kExchangeLatenciesOfBlock = 0.3;

/// The memory latencies of a row in registers that begins anywhere: the elements outside of its packs are loaded behind
/// them, and nothing else is in flight meanwhile. 32, 48 and 96 rows of 700001 f16 take clusters of 16 blocks of 1024
/// threads 48, 69 and 128 µs, 64 and 100 of 524288 64 and 95 (H100, CUDA 13.0, 2026-11-27).
constexpr double kSinglesLatencies = 3;

/// The instructions of an element, of which an exponential counts eight (16 a cycle), where a row is held between the
/// two passes: one row of 2^16 f16 takes a block of 1024 threads 8.3 µs, of which loading and writing 128 KiB each are
/// 3.6, and eight of 2^20 take clusters of eight such blocks 23.9 µs, a grid 19.8 (H100, CUDA 13.0, 2026-11-26).
constexpr double kElementInstructions = 22;

/// The same in tiles, by SASS of sm_90, and those of a row for each of its lanes: of threads with rows to themselves,
/// for whose columns there is code, and of others. 1000003 rows of 7 f16 take threads with rows to themselves 11.1 µs,
/// two lanes 17, four 31 and eight 38, 2^19 rows of 50 f16 four lanes 39.1, eight 42.9, 16 54.8 and 32 80.3 (the
/// model's grids, H100, CUDA 13.0, 2026-11-27).
constexpr double kUnrolledInstructions = 16, kUnrolledRowInstructions = 25, kLaneInstructions = 100;

/// The instructions of a row for each lane that holds packs of it, which the row may not fill, and the same where rows
/// begin anywhere: 2^17 rows of 200 f16 take 32 lanes 43.5 µs and 16 lanes 36.7, 2^19 of 50 f16 8 lanes 66, 2^18 of
/// 100 f16 44 (H100, CUDA 13.0, 2026-11-27).
constexpr double kGroupInstructions = 120, kMisalignedGroupInstructions = 270;

/// The memory latencies of an item of a pipeline (RowChunks::add_to()).
constexpr double kItemLatencies = 3.4;

/// A policy on a problem.
struct Layout : SoftmaxRowLayout {
  using SoftmaxRowLayout::SoftmaxRowLayout;

  bool is_in_shared() const { return is_of_blocks() && smem_kib > 0; }

  /// Threads that read packs of a chunk together.
  std::int64_t kernel_threads() const {
    return is_held() ? held_rows(columns, 1).group_threads(block_threads) : block_threads;
  }

  std::int64_t launched_threads() const {
    return is_held() ? held_rows(columns, 1).launched_threads(block_threads) : block_threads;
  }

  Reason is_valid(const DeviceFacts& facts) const {
    const std::int64_t most_rows = last_of(problem, 0), longest = last_of(problem, 1);
    const std::int64_t needed_smem = is_in_tiles()    ? smem_bytes(longest)
                                     : is_in_shared() ? smem_kib * 1024 + 2048
                                                          : 0;
    return first_reason(
        {check_blocks(facts, block_threads, cluster_blocks), check_smem(facts, needed_smem),
         reason_if(staging == Staging::ring, "rings are for reproducible rows"),
         reason_if(is_group() && packs_per_thread % row_packs != 0,
                   "the packs of a thread hold no whole rows"),
         reason_if(is_in_tiles() && is_aligned, "tiles in shared memory are of misaligned rows"),
         reason_if(is_in_tiles() && tile.elements_each > kMostElementsEach,
                   "a lane has more elements than the registers hold"),
         row_chunks(most_rows, longest).is_valid(), is_held() ? held_is_valid(facts, most_rows, longest) : Reason()});
  }

  Reason held_is_valid(const DeviceFacts& facts, std::int64_t most_rows, std::int64_t longest) const {
    return first_reason(
        {reason_if(pack_in_bytes() != HeldRows::kPackBytes, "held are rows whose packs have 16 bytes"),
         HeldRows::check_block(block_threads),
         held_rows(longest, facts.sm_count)
             .is_valid(facts, most_rows, static_cast<std::int64_t>(traits.state_bytes()))});
  }

  Unit unit() const {
    const bool is_wide = needs_wide_index(problem, 0) || needs_wide_index(problem, 1);
    Unit unit;
    unit.source = fmt::format(
        "#include \"{}\"\n"
        "{}\n"
        "using Types = hone::SoftmaxTypes<{}, {}, {}, {}>;\n"
        "using Kernel = hone::Softmax<Types, {}>;\n"
        "static_assert(Types::kElements == {} && sizeof(Types::State) == {}, \"host and device disagree\");\n",
        is_in_tiles() ? "softmax_tiles.cuh" : "softmax.cuh", is_held() ? "#include \"row_held.cuh\"\n" : "",
        traits.type_list(), index_type(is_wide), traits.is_log, is_aligned,
        kernel_threads(), traits.pack_elements, traits.state_bytes());
    if (is_held()) {
      held_rows(columns, 1).add_to(unit, packs_per_thread, block_threads, min_blocks);
      return unit;
    }
    if (cuts_rows()) {
      row_chunks().add_to(unit, packs_per_thread, block_threads, min_blocks);
      return unit;
    }
    const std::string body =
        is_group()
            ? fmt::format("Kernel::groups<{}, {}, {}>", threads_per_row, row_packs, rows_at_once)
        : is_in_tiles()
            ? fmt::format("hone::SoftmaxTiles<Types, {}, {}, {}, {}, {}>::run", block_threads, threads_per_row,
                          tile.least_each, tile.elements_each, rows_at_once)
        : is_in_shared() ? fmt::format("Kernel::in_shared<{}>", cluster_blocks)
                         : fmt::format("Kernel::in_registers<{}, {}>", cluster_blocks, packs_per_thread);
    unit.entries = {kernel_entry(body, *this)};
    return unit;
  }

  double element_instructions() const {
    const auto of_row = static_cast<double>(center_columns);
    if (is_group())
      return threads_per_row *
             (kElementInstructions * static_cast<double>(row_packs * traits.pack_elements) +
              (is_aligned ? kGroupInstructions : kMisalignedGroupInstructions)) / of_row;
    if (!is_in_tiles()) return kElementInstructions;
    if (unrolls_rows()) return kUnrolledInstructions + kUnrolledRowInstructions / of_row;
    return kElementInstructions + kLaneInstructions * threads_per_row / of_row;
  }

  WorkShape shape() const {
    WorkShape shape{.dynamic_smem_bytes = static_cast<std::uint32_t>(smem_bytes(columns)),
                    .tiles = tiles(),
                    .launches = row_chunks().launches(),
                    .cooperative = is_held(),
                    .independent_blocks = scope != Scope::grid,
                    .thread_gbps = traits.thread_gbps()};
    if (cluster_blocks > 1) {
      shape.round_latencies = kClusterLatencies;
      if (is_in_shared())
        shape.pipeline_fill_latencies = kExchangeLatencies + kExchangeLatenciesOfBlock * cluster_blocks;
      else if (!is_aligned)
        shape.pipeline_fill_latencies = kSinglesLatencies;
    }
    if (scope != Scope::grid)
      shape.instructions_per_byte = element_instructions() / static_cast<double>(traits.in_bytes + traits.out_bytes);
    if (is_held()) {
      held_rows(columns, 1).add_to(shape, rows, traits.traffic(1, 1) - 1, block_threads);
    } else if (cuts_rows()) {
      shape.bytes_in_flight_per_block = block_threads * packs_per_thread * pack_in_bytes();
      shape.traffic = traits.traffic(1, 1);
      row_chunks().add_to(shape, shape.traffic - 1, columns * traits.in_bytes, kItemLatencies);
    } else if (scope == Scope::warp) {
      shape.bytes_in_flight_per_block = tile_rows() * columns * traits.in_bytes;
      if (is_in_tiles()) shape.round_latencies = kTileRoundLatencies;
      // A lane that has a row to itself reads and writes half a sector of 32 bytes at a time.
      if (threads_per_row == 1 && row_packs > 1) shape.traffic = kHalfSectors;
      if (is_group()) shape.traffic = std::max(shape.traffic, traffic_of_lanes(row_packs, threads_per_row));
    } else {
      const std::int64_t all = at_least_one(packs()), held = std::min(all, held_packs(all));
      constexpr std::int64_t kTile = 4;  // of softmax_shares.cuh, as in the next line
      const std::int64_t rest_loads = is_in_shared() ? kTile : std::min<std::int64_t>(kTile, packs_per_thread);
      shape.bytes_in_flight_per_block = mean_in_flight(held, all, held * pack_in_bytes() / cluster_blocks,
                                                       block_threads * rest_loads * pack_in_bytes());
      shape.traffic = traits.traffic(all - held, all);
    }
    return shape;
  }

  void encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace, LaunchList& launches) const {
    with_accumulator(traits, [&]<class Acc>(Acc) {
      SoftmaxArguments<Acc> arguments{
          .in = buffers[0],
          .out = buffers[1],
          .workspace = workspace,
          .rows = static_cast<std::uint64_t>(rows),
          .columns = static_cast<std::uint64_t>(columns),
          .in_pitch = SoftmaxBase::pitch(problem, 0),
          .out_pitch = SoftmaxBase::pitch(problem, 1),
          .scale = softmax_factors<Acc>(problem),
          .chunks = static_cast<unsigned>(is_held() ? 0 : chunks(max_blocks)),
          .packs_per_thread = static_cast<unsigned>(shared_packs(packs())),
          .lag = static_cast<unsigned>(is_held() ? 0 : row_chunks().lag(grid(max_blocks)))};
      if (is_held()) held_rows(columns, grid(max_blocks)).set(arguments);
      for (int entry = 0; entry < row_chunks().launches(); ++entry) {
        Launch& launch = add_launch(launches, grid(max_blocks), launched_threads(), arguments, entry, cluster_blocks);
        launch.dynamic_smem_bytes = static_cast<std::uint32_t>(smem_bytes(columns));
        launch.cooperative = is_held();
      }
    });
  }

  std::int64_t longest_chain(std::int64_t max_blocks) const {
    // A thread's packs one after the other, trees in a pack, a tile, a warp, a block, a cluster; then the chunks.
    const std::int64_t threads = is_held() ? kernel_threads() * max_blocks
                                           : row_threads * at_least_one(chunks(max_blocks));
    return divide_up(at_least_one(packs()), threads) + tile.elements_each + 48;
  }
};

struct View : PolicyView<Layout> {
  using PolicyView::PolicyView;

  std::int64_t row_bytes = center_packs * pack_in_bytes();
  std::int64_t held = held_packs(center_packs);

  bool is_in_registers() const { return is_of_blocks() && smem_kib == 0; }
  HeldRows held_rows_of_all_sms() const { return held_rows(center_columns, facts.sm_count); }

  /// Where nothing else can, a large block reads what it does not hold twice.
  bool is_last_resort() const { return cluster_blocks == 1 && packs_per_thread == 8 && block_threads == 512; }
};

constexpr auto kPruneRules = joined(joined(kChunkRules<View>, kHeldRules<View>), std::array<PruneRule<View>, 20>{{
    {"few warps of a block that holds rows take long for each",
     "64 rows of 2^20 f16 and f32 take 110 and 200 µs by blocks of 512 threads, 104 and 197 by 1024; 16 of 3000017 f16 "
     "82 and 79 (H100, CUDA 13.0, 2026-11-26)",
     [](const View& v) {
       return v.is_held() && v.block_threads < 1024 && v.traits.accumulator != DType::f64;
     }},
    {"two groups of warps hide what each does once a row from each other where a block has one chunk of it",
     "31 and 64 rows of 2^20 f16 and 40 of 800000 take 60.2, 112.4 and 59.5 µs by two and 62.1, 113.9 and 63.2 by one; "
     "of f32, with two chunks, 111.2, 219.6 and 107.2, and 106.3, 209.2 and 106.4 (H100); 64 of 2^20 f16 92.8 by two, "
     "96.5 by three and 102.3 by one (H200, CUDA 13.0, 2026-11-27)",
     [](const View& v) { return v.is_held() && v.row_groups != (v.held_rows_of_all_sms().chunks == 1 ? 2 : 1); }},
    {"a cluster holds so short a row, and its blocks wait for each other only",
     "256 rows of 2^18 f16 take 248 µs by a grid of blocks of 512 threads, two of whose warps combined, where a copy "
     "takes 92 (H100, CUDA 13.0, 2026-11-26)",
     [](const View& v) { return v.is_held() && v.row_bytes < HeldRows::kLeastRowBytes; }},
    kNoLaunchBounds<View, MinBlocks::unset>,
    {"all that is held of a row is in flight in any case",
     "NVRTC of CUDA 13.0, sm_90, 2026-11-24: min_blocks=1 brings 4 or 5 of 8 loads in flight to 8 in 3 of 18 units of "
     "chunks and pipelines, and none of 28 others",
     [](const View& v) { return v.min_blocks != MinBlocks::unset && v.scope != Scope::grid; }},

    {"registers for three quarters of the threads were tried for reproducible rows only", kNotMeasured,
     [](const View& v) { return v.min_blocks == MinBlocks::three_quarters; }},

    {"groups of lanes need no blocks of more than 256 threads",
     "1000003 rows of 7 f16 in tiles take 11.1 µs by 256 threads, 16.9 by 512 and 17.1 by 1024, all of which wait for "
     "the loads of a tile; groups in registers were not measured (H100, CUDA 13.0, 2026-11-27)",
     [](const View& v) { return v.scope == Scope::warp && v.block_threads > 256; }},
    {"a row has fewer packs than lanes", kNotMeasured,
     [](const View& v) { return v.is_group() && v.threads_per_row > v.center_packs; }},
    {"so many rows at once are more than the registers hold", "128.6 % (H100, prune_rules)",
     [](const View& v) { return v.is_group() && v.rows_at_once > 4; }},
    {"the elements outside of packs, which rows that are not aligned have, want 8 lanes or more", kNotMeasured,
     [](const View& v) { return v.is_group() && !v.is_aligned && v.threads_per_row < 8; }},

    {"a row has fewer elements than lanes", kNotMeasured,
     [](const View& v) { return v.is_in_tiles() && v.threads_per_row > v.center_columns; }},

    {"loads at once, and packs of lanes, in powers of two are enough of a choice", "104.9 % (H100, prune_rules)",
     [](const View& v) {
       return (v.cuts_rows() || v.is_group()) &&
              !std::has_single_bit(static_cast<unsigned>(v.packs_per_thread));
     }},
    {"loads at once of doubles are more than the registers of a block hold",
     "NVRTC of CUDA 13.0, sm_90, 2026-11-24: 8 packs of 1024 threads spill 112 bytes; those of f16, bf16 and f32 none",
     [](const View& v) {
       return v.is_chunks() && v.traits.accumulator == DType::f64 &&
              v.block_threads * v.packs_per_thread > kMostPacksPerBlock;
     }},

    {"a row has fewer packs than threads", "277.6 % (H100, prune_rules)",
     [](const View& v) { return v.is_of_blocks() && v.row_threads > v.center_packs; }},
    {"a row is too short for so many blocks", "195.1 % (H100, prune_rules)",
     [](const View& v) { return v.scope == Scope::cluster && v.row_bytes < v.cluster_blocks * kLeastBytesPerBlock; }},
    {"less shared memory would do", "the same packs of a row are held",
     [](const View& v) {
       return v.is_in_shared() && v.smem_kib > kLeastSmemKib &&
              v.smem_bytes(v.center_packs * v.traits.pack_elements) <= v.smem_kib * 512;
     }},
    {"shared memory holds less than half of a row", "100.8 % (H100, prune_rules)",
     [](const View& v) { return v.is_in_shared() && v.held * 2 < v.center_packs; }},
    {"the packs of a block are more than its registers hold",
     "ptxas of CUDA 13.0, sm_90: 8 packs of 1024 threads spill 24 to 40 bytes",
     [](const View& v) { return v.is_in_registers() && v.block_threads * v.packs_per_thread > kMostPacksPerBlock; }},
    {"registers have room for twice the packs of a row", "114.3 % (H100, prune_rules)",
     [](const View& v) { return v.is_in_registers() && v.held > 2 * v.center_packs; }},
    {"registers do not hold a row", "102.8 % (H100, prune_rules)",
     [](const View& v) { return v.is_in_registers() && v.held < v.center_packs && !v.is_last_resort(); }},
}});

}  // namespace

const ParameterSpace& SoftmaxRowPolicy::space() {
  using P = SoftmaxRowPolicy;
  static const auto& space = never_destroyed(space_of<P>(
      PolicyField{&P::scope, scope_parameter({Scope::warp, Scope::block, Scope::cluster, Scope::grid})},
      PolicyField{&P::threads_per_row,
                  ordinal("threads_per_row", {1, 2, 4, 8, 16, 32}).only_if("scope", {Scope::warp})},
      PolicyField{&P::cluster_blocks, cluster_parameter({2, 4, 8, 16})},
      PolicyField{&P::combine, chunks_parameter({Combine::second_kernel, Combine::pipeline, Combine::held})},
      PolicyField{&P::ring_kib, ring_parameter()},
      PolicyField{&P::row_groups, row_groups_parameter()},
      PolicyField{&P::block_threads, ordinal("block_threads", {128, 256, 512, 1024})},
      PolicyField{&P::staging, staging_parameter({Staging::direct, Staging::shared, Staging::ring})
                                   .only_if("scope", {Scope::warp, Scope::block, Scope::cluster})},
      PolicyField{&P::packs_per_thread,
                  ordinal("packs_per_thread", {1, 2, 3, 4, 6, 8}).only_if("staging", {Staging::direct})},
      PolicyField{&P::smem_kib, ordinal("smem_kib", {48, 112, 224})
                                    .only_if("scope", {Scope::block, Scope::cluster})
                                    .only_if("staging", {Staging::shared, Staging::ring})},
      PolicyField{&P::min_blocks,
                  min_blocks_parameter({MinBlocks::unset, MinBlocks::one, MinBlocks::three_quarters})}));
  return space;
}

const KernelFamily& softmax_family() {
  static const auto& family = never_destroyed<LayoutFamily<SoftmaxBase, Layout, kPruneRules, CanonicalSoftmax>>(
      FamilyTraits{.name = "softmax",
                   .space = SoftmaxRowPolicy::space(),
                   .extent_names = {"rows", "columns"},
                   .scalar_names = {"scale"},
                   .operations = kSoftmaxOperations,
                   .kernels = {"softmax.cuh", "softmax_tiles.cuh", "row_chunks.cuh", "row_pipeline.cuh",
                               "row_held.cuh", "canonical_softmax_rows.cuh", "canonical_softmax_shared.cuh",
                               "canonical_softmax_tiles.cuh", "canonical_softmax_ring.cuh",
                               "canonical_softmax_held.cuh"}});
  return family;
}

}  // namespace hone
