#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/families/row_chunks.h"
#include "runtime/families/softmax/canonical_softmax_columns.h"
#include "runtime/families/softmax/softmax_base.h"
#include "runtime/families/softmax/softmax_column_policy.h"
#include "runtime/families/work_division.h"

namespace hone {
namespace {

constexpr std::int64_t kMostElementsOfLargeBlocks = 16;

/// The memory latencies in which the threads of a column take a partial of a chunk each: 256 columns of 2^16 f32 take
/// 108.8 µs where 16 threads combine 132 chunks, and 84.0 where 64 combine 33 (H100, CUDA 13.0, 2026-11-25).
constexpr double kCombiningLatencies = 5;

/// The memory latencies that the blocks of a cluster wait for each other in a tile, and the states that a block stores
/// in others in one. 256 × 65536 f32 by clusters of 2, 4, 8 and 16 blocks with 32 lanes take 63, 66, 87 and 221 µs, by
/// blocks 52; 4096 × 4096 by any clusters 78 to 87, as many as by blocks that read twice (H100, CUDA 13.0, 2026-11-26).
constexpr double kExchangeLatencies = 4, kStatesPerLatency = 1000;

/// Packs that a block has in flight where it does not hold its rows.
constexpr int kLeastPacksInFlight = 4096;

/// Columns of less than this are no work for several blocks.
constexpr std::int64_t kLeastSharedRows = 64;

struct Layout : SoftmaxColumnPolicy {
  const Problem& problem;
  SoftmaxTraits traits{problem};
  std::int64_t outer = problem.extents[0], reduced = problem.extents[1], inner = problem.extents[2];
  std::int64_t aligned_elements = SoftmaxBase::pack_elements(problem);  ///< of packs that are aligned in every row
  bool is_phase_matched = staging == Staging::phase_matched;
  std::int64_t elements = is_phase_matched ? traits.pack_elements : aligned_elements;  ///< of a pack

  Layout(const Problem& of, const Policy& policy)
      : SoftmaxColumnPolicy(policy.as<SoftmaxColumnPolicy>()), problem(of) {}

  /// Packs side by side. Those of rows that begin anywhere reach beyond the tile.
  std::int64_t tile_columns() const { return columns_of(lanes); }
  std::int64_t columns_of(std::int64_t of_lanes) const { return (of_lanes - (is_phase_matched ? 1 : 0)) * elements; }
  /// The places of a tile's columns in shared memory.
  std::int64_t slots() const { return (lanes + (is_phase_matched ? 1 : 0)) * elements; }
  std::int64_t column_tiles(std::int64_t of_inner) const { return divide_up(of_inner, tile_columns()); }
  std::int64_t tiles() const { return at_least_one(outer * column_tiles(inner)); }

  /// Rows that a block has in registers, or loads at once.
  std::int64_t held_rows() const { return row_lanes() * packs_per_thread; }

  /// Shared memory of the kernels: states that meet, those of a cluster's blocks, and the combined ones.
  std::int64_t static_smem_bytes() const {
    const std::int64_t of_cluster = cluster_blocks > 1 ? cluster_blocks : 0;
    return (block_threads / 32 + of_cluster + 1) * slots() * static_cast<std::int64_t>(traits.state_bytes());
  }

  /// Partial states of one chunk of all tiles.
  std::int64_t partials_per_chunk(std::int64_t of_outer, std::int64_t of_inner) const {
    return at_least_one(of_outer * column_tiles(of_inner) * tile_columns());
  }

  std::int64_t most_chunks() const {
    const std::int64_t of_rows = divide_up(at_least_one(reduced), held_rows());
    return at_least_one(std::min(of_rows, traits.most_partials() / partials_per_chunk(outer, inner)));
  }

  std::int64_t work_items() const { return tiles() * (in_chunks() ? most_chunks() : std::int64_t{cluster_blocks}); }

  std::int64_t grid(std::int64_t max_blocks) const { return whole_clusters(max_blocks, work_items(), cluster_blocks); }

  double exchange_latencies() const {
    if (cluster_blocks == 1) return 0;
    return kExchangeLatencies + static_cast<double>(tile_columns() * cluster_blocks) / kStatesPerLatency;
  }

  std::int64_t chunks(std::int64_t max_blocks) const { return best_chunks(grid(max_blocks), tiles(), most_chunks()); }

  Reason is_valid(const DeviceFacts& facts) const {
    const std::int64_t partials = partials_per_chunk(last_of(problem, 0), last_of(problem, 2));
    return first_reason({check_blocks(facts, block_threads, cluster_blocks), check_static_smem(static_smem_bytes()),
                         reason_if(is_phase_matched && aligned_elements == elements, "every row begins with a pack"),
                         reason_if(is_phase_matched && row_lanes() % elements != 0,
                                   "the rows of a thread do not begin alike"),
                         reason_if(in_chunks() && 2 * partials > traits.most_partials(),
                                   "columns have more partial results than the workspace")});
  }

  Unit unit() const {
    const std::string source = fmt::format(
        "#include \"softmax_columns.cuh\"\n\n"
        "using Types = hone::ColumnTypes<{}, {}, {}, {}>;\n"
        "using Kernel = hone::SoftmaxColumns<Types, {}, {}, {}>;\n"
        "static_assert(Kernel::kColumns == {} && Kernel::kSlots == {} && sizeof(Types::State) == {},\n"
        "              \"host and device disagree\");\n",
        traits.type_list(), traits.is_log, elements, is_phase_matched, block_threads, lanes, packs_per_thread,
        tile_columns(), slots(), traits.state_bytes());
    if (in_chunks())
      return unit_of(source,
                     {kernel_entry("Kernel::publish_chunks", *this), kernel_entry("Kernel::write_chunks", *this)});
    return unit_of(source, {kernel_entry(fmt::format("Kernel::whole<{}>", cluster_blocks), *this)});
  }

  WorkShape shape() const {
    const std::int64_t rows = at_least_one(reduced), at_once = std::min(rows, held_rows());
    const std::int64_t run_bytes = std::min(inner, tile_columns()) * traits.in_bytes;
    return {.tiles = work_items(),
            .bytes_in_flight_per_block = at_once * run_bytes / cluster_blocks,
            .launches = in_chunks() ? 2 : 1,
            .traffic = traits.traffic(rows - (in_chunks() ? 0 : at_once), rows) *
                       (inner > tile_columns() ? traffic_of_tiles(run_bytes) : 1),
            .independent_blocks = !in_chunks(),
            .pipeline_fill_latencies = exchange_latencies(),
            .thread_gbps = traits.thread_gbps(),
            .combining_threads = static_cast<int>(std::min<std::int64_t>(tiles() * row_lanes(), 1 << 30)),
            .combining_latencies = kCombiningLatencies};
  }

  /// The traffic where tiles with runs of so many bytes lie side by side.
  double traffic_of_tiles(std::int64_t run_bytes) const {
    return traffic_of_runs(run_bytes) * (is_phase_matched ? traffic_of_shared_edges(run_bytes) : 1);
  }

  void encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace, LaunchList& launches) const {
    with_accumulator(traits, [&]<class Acc>(Acc) {
      const SoftmaxColumnsArguments<Acc> arguments{
          .in = buffers[0],
          .out = buffers[1],
          .workspace = workspace,
          .outer = outer,
          .reduced = reduced,
          .inner = inner,
          .in_pitch = SoftmaxBase::pitch(problem, 0),
          .out_pitch = SoftmaxBase::pitch(problem, 1),
          .scale = softmax_factors<Acc>(problem),
          .chunks = in_chunks() ? static_cast<unsigned>(chunks(max_blocks)) : 0};
      for (int entry = 0; entry < (in_chunks() ? 2 : 1); ++entry)
        add_launch(launches, grid(max_blocks), block_threads, arguments, entry, cluster_blocks);
    });
  }

  std::int64_t longest_chain(std::int64_t max_blocks) const {
    // A thread's rows one after the other, then lanes, warps, blocks and chunks, some of them in a row as well.
    const std::int64_t parts = in_chunks() ? chunks(max_blocks) : 1;
    return divide_up(reduced, row_lanes() * parts) + divide_up(parts, row_lanes()) +
           block_threads / std::min(32, lanes) + 48;
  }
};

/// Phases of rows that begin anywhere are matched from so many columns on, typical of a class, and from the second
/// number on in any case.
constexpr std::int64_t kLeastPhaseMatchedColumns = 256, kLeastColumnsWithoutSingles = 2048;
constexpr std::string_view kPhaseMatchedRows =
    "f16 of 300007 × 100, 65536 × 333, 16384 × 1001, 8192 × 2001, 12289 × 4097 and 31 × 1048577 by direct 95.5, 91.1, "
    "67.8, 67.6, 172 and 117 µs, by phase_matched 110, 79.0, 57.0, 59.7, 152 and 88.4 (H100, hone tune, graphs, "
    "2026-11-27)";

/// Where both are candidates, direct tiles have rows of at least a sector.
constexpr std::int64_t kSectorBytes = 32;

struct View : PolicyView<Layout> {
  using PolicyView::PolicyView;

  std::int64_t rows = center_of(problem, 1);
  std::int64_t columns = center_of(problem, 2);
  std::int64_t row_packs = divide_up(columns, elements);

  /// The policy that always works: a small block with its rows read twice, or mostly idle where there are hardly any.
  bool is_last_resort() const {
    return cluster_blocks == 1 && block_threads == 256 && (packs_per_thread == 4 || packs_per_thread == 1);
  }
  /// Rows begin anywhere, and packs are as narrow as that needs.
  bool has_narrow_packs() const { return !is_phase_matched && aligned_elements < traits.pack_elements; }
  bool may_be_held() const { return !in_chunks() && !is_last_resort(); }
};

constexpr std::array<PruneRule<View>, 14> kPruneRules{{
    kNoLaunchBounds<View, MinBlocks::unset>,
    {"the loads of a thread of few packs, or of 1024 threads, are in flight in any case",
     "NVRTC of CUDA 13.0, sm_90, 2026-11-24: none of 13 pairs of units of f32 with 1 to 4 packs changes; 8 not seen",
     [](const View& v) { return v.min_blocks == MinBlocks::one && (v.packs_per_thread < 8 || v.block_threads > 512); }},
    {"a thread of so many has too few registers for its elements and their sums",
     "ptxas of CUDA 13.0, sm_90: states of f64, or of more than 16 elements, of 1024 threads spill 80 to 168 bytes",
     [](const View& v) {
       return v.block_threads > 512 &&
              (v.traits.accumulator == DType::f64 || v.packs_per_thread * v.elements > kMostElementsOfLargeBlocks);
     }},
    {"rows have fewer packs than lanes", kNotMeasured,
     [](const View& v) { return v.lanes > 2 && !v.is_phase_matched && v.lanes > v.row_packs; }},
    {"half as many lanes have all columns", kNotMeasured,
     [](const View& v) { return v.lanes > 2 && v.is_phase_matched && v.columns_of(v.lanes / 2) >= v.columns; }},
    {"packs of rows that begin anywhere are more than the registers of so many threads",
     "NVRTC of CUDA 13.0, sm_90, 2026-11-27: 512 threads of 8 packs and 1024 of 4 keep 32 to 88 bytes in local memory, "
     "bf16 and f32 of 8192 × 5001",
     [](const View& v) { return v.is_phase_matched && v.block_threads * v.packs_per_thread >= 4096; }},
    {"short rows have too many torn packs", kPhaseMatchedRows,
     [](const View& v) { return v.is_phase_matched && v.columns < kLeastPhaseMatchedColumns; }},
    {"long rows have aligned packs wherever they begin", kPhaseMatchedRows,
     [](const View& v) { return v.has_narrow_packs() && v.columns >= kLeastColumnsWithoutSingles; }},
    {"a quarter of the packs reach beyond the tile", kNotMeasured,
     [](const View& v) { return v.is_phase_matched && v.lanes < 8; }},
    {"a tile's row is less than a sector", kNotMeasured,
     [](const View& v) {
       return v.has_narrow_packs() && v.columns >= kLeastPhaseMatchedColumns &&
              v.tile_columns() * v.traits.in_bytes < kSectorBytes;
     }},
    {"there are too few rows for several blocks", kNotMeasured,
     [](const View& v) { return (v.in_chunks() || v.cluster_blocks > 1) && v.rows < kLeastSharedRows; }},
    {"the registers of a cluster do not hold the rows",
     "columns of 4096 × 4096 f32: 75.0 µs by a cluster of 2, 66.6 by blocks (H100, tuner_regret, 2026-11-26)",
     [](const View& v) { return v.cluster_blocks > 1 && v.held_rows() < v.rows; }},
    {"a block that reads rows twice needs more loads in flight", kNotMeasured,
     [](const View& v) {
       return v.may_be_held() && v.held_rows() < v.rows && v.block_threads * v.packs_per_thread < kLeastPacksInFlight;
     }},
    {"registers have room for twice the rows", "252.0 % (H100, prune_rules)",
     [](const View& v) { return v.may_be_held() && v.held_rows() > 2 * v.rows; }},
}};

}  // namespace

const ParameterSpace& SoftmaxColumnPolicy::space() {
  using P = SoftmaxColumnPolicy;
  static const auto& space = never_destroyed(
      space_of<P>(PolicyField{&P::scope, scope_parameter({Scope::block, Scope::cluster, Scope::grid})},
                  PolicyField{&P::cluster_blocks, cluster_parameter({2, 4, 8, 16})},
                  PolicyField{&P::lanes, ordinal("lanes", {2, 4, 8, 16, 32, 128})},
                  PolicyField{&P::block_threads, ordinal("block_threads", {256, 512, 1024})},
                  PolicyField{&P::packs_per_thread, ordinal("packs_per_thread", {1, 2, 4, 8})},
                  PolicyField{&P::staging, staging_parameter({Staging::direct, Staging::phase_matched})},
                  PolicyField{&P::min_blocks, min_blocks_parameter({MinBlocks::unset, MinBlocks::one})}));
  return space;
}

/// Pitches are between rows of `inner` elements.
const KernelFamily& softmax_columns_family() {
  static const auto& family = never_destroyed<LayoutFamily<SoftmaxBase, Layout, kPruneRules, CanonicalSoftmaxColumns>>(
      FamilyTraits{.name = "softmax_columns",
                   .space = SoftmaxColumnPolicy::space(),
                   .extent_names = {"outer", "reduced", "inner"},
                   .scalar_names = {"scale"},
                   .operations = kSoftmaxOperations,
                   .kernels = {"softmax_columns.cuh", "canonical_softmax_columns.cuh"}});
  return family;
}

}  // namespace hone
