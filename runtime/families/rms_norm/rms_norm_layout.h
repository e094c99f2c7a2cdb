// RmsNormLayout: the policies of rms_norm, and what they make of a problem.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include <fmt/format.h>

#include <hone/kernel_family.h>
#include <hone/rms_norm.h>

#include "kernel_templates/rms_norm_arguments.h"
#include "runtime/families/built_in_family.h"
#include "runtime/families/counts.h"
#include "runtime/families/row_chunks.h"
#include "runtime/families/row_held.h"
#include "runtime/families/row_tiles.h"
#include "runtime/families/work_division.h"

namespace hone::rms_norm {

/// What an SM of a cluster draws of rows that it reads and writes in turn: two rows of 2^20 f16 by clusters of 16
/// blocks take 7.6 µs, four 10.2, six 11.9 and seven 13.3, by clusters of 8 two take 12.5 and eight 18 to 20 (H100,
/// CUDA 13.0, 2026-11-27).
inline constexpr double kClusterSmGbps = 56;

inline bool has_weight(const Problem& problem) { return problem.operation % 2 == 1; }
inline bool has_residual(const Problem& problem) { return problem.operation >= 2; }
inline double eps_of(const Problem& problem) { return problem.scalars[0].value_or(RmsNormSpec::kUsualEps); }

/// The pitch of the inputs (0) or the outputs (1), in elements.
inline std::int64_t pitch_of(const Problem& problem, std::size_t side) {
  return hone::pitch_of(problem, side, problem.extents[1]);
}

/// The bytes of the packs that all rows are made of.
inline std::int64_t pack_bytes_of(const Problem& problem) {
  return std::max<std::int64_t>(problem.alignment, element_bytes(problem));
}

/// Where the weights are of rows that begin anywhere.
enum class Weights : std::int32_t {
  registers,  ///< loaded for each row
  shared,     ///< of a block's columns, for all of its rows
};
inline constexpr NamedValues<Weights, 2> weights_parameter{"weights", {"registers", "shared"}};

struct RmsNormPolicy {
  Scope scope = Scope::block;                ///< of a row
  std::int32_t threads_per_row = 32;         ///< of a warp
  std::int32_t rows_per_thread = 1;          ///< of a warp, at once
  std::int32_t cluster_blocks = 1;           ///< of a row
  Combine combine = Combine::second_kernel;  ///< of a grid
  std::int32_t ring_kib = 0;                 ///< of each block of a grid that holds rows
  std::int32_t row_groups = 1;               ///< of its warps, which take rows in turn
  std::int32_t block_threads = 256;
  Staging staging = Staging::direct;  ///< direct: in packs that all rows are made of; shifted: in packs of 16 bytes of
                                      ///< rows that begin anywhere; shared: packs that exceed the registers are held in
                                      ///< shared memory, and rows of a warp are copied there in tiles
  Weights weights = Weights::registers;
  std::int32_t packs_per_thread = 1;  ///< of a row, in registers; of chunks and tiles, loads at once
  std::int32_t smem_kib = 0;          ///< of a block, at most, that packs are held in
  MinBlocks min_blocks = MinBlocks::one;

  bool is_held() const { return scope == Scope::grid && combine == Combine::held; }  ///< row_held.cuh
  bool cuts_rows() const { return scope == Scope::grid && !is_held(); }  ///< into chunks that are read twice
  bool is_in_tiles() const { return scope == Scope::warp && staging == Staging::shared; }  ///< rms_norm_tiles.cuh

  /// However many rows and chunks a member has, its partial results fit.
  std::size_t workspace_bytes(std::int64_t) const { return scope == Scope::grid ? kWorkspaceBytes : 0; }

  static const ParameterSpace& space() {
    using P = RmsNormPolicy;
    static const auto& space = never_destroyed(space_of<P>(
        PolicyField{&P::scope, scope_parameter({Scope::block, Scope::warp, Scope::cluster, Scope::grid})},
        PolicyField{&P::threads_per_row,
                    ordinal("threads_per_row", {32, 16, 8, 4, 2, 1}).only_if("scope", {Scope::warp})},
        PolicyField{&P::rows_per_thread,
                    ordinal("rows_per_thread", {1, 2, 4}).only_if("scope", {Scope::warp}).otherwise(1)},
        PolicyField{&P::cluster_blocks, cluster_parameter({2, 4, 8, 16})},
        PolicyField{&P::combine, chunks_parameter({Combine::second_kernel, Combine::pipeline, Combine::held})},
        PolicyField{&P::ring_kib, ring_parameter()},
        PolicyField{&P::row_groups, row_groups_parameter()},
        PolicyField{&P::block_threads, ordinal("block_threads", {256, 128, 512, 1024})},
        PolicyField{&P::staging, staging_parameter({Staging::direct, Staging::shared, Staging::shifted})
                                     .only_if("scope", {Scope::block, Scope::warp, Scope::cluster})},
        PolicyField{&P::weights,
                    weights_parameter({Weights::registers, Weights::shared}).only_if("staging", {Staging::shifted})},
        PolicyField{&P::packs_per_thread, ordinal("packs_per_thread", {1, 2, 3, 4, 6, 8, 16})},
        PolicyField{&P::smem_kib, ordinal("smem_kib", {32, 112, 224})
                                      .only_if("scope", {Scope::block, Scope::cluster})
                                      .only_if("staging", {Staging::shared})},
        PolicyField{&P::min_blocks, min_blocks_parameter({MinBlocks::one, MinBlocks::unset, MinBlocks::one_half})}));
    return space;
  }
};

/// The division of a problem, or of the typical one of a class, by a policy.
struct Layout : RmsNormPolicy {
  const Problem& problem;
  std::int64_t rows = problem.extents[0];
  bool is_aligned = problem.alignment >= kMaxAlignment;
  std::int64_t pack_bytes =
      scope == Scope::grid || (staging != Staging::direct && !is_in_tiles()) ? kMaxAlignment : pack_bytes_of(problem);
  std::int64_t packs = problem.extents[1] * element_bytes(problem) / pack_bytes;  ///< of a row
  std::int64_t row_threads = scope == Scope::warp ? threads_per_row : std::int64_t{block_threads} * cluster_blocks;
  std::int64_t held_packs = is_held() || is_in_tiles() ? packs
                            : cuts_rows()              ? 0
                                                       : row_threads * (packs_per_thread + shared_packs());
  std::int64_t rows_at_once = is_in_tiles() ? rows_of_tile_thread() : rows_per_thread;
  std::int64_t tile_rows = scope == Scope::warp ? block_threads / threads_per_row * rows_at_once : 1;
  std::int64_t streams = has_residual(problem) ? 2 : 1;  ///< arrays that are read

  Layout(const Problem& of, const Policy& policy) : RmsNormPolicy(policy.as<RmsNormPolicy>()), problem(of) {}

  std::int64_t tiles() const {
    if (is_held()) return at_least_one(rows) * at_least_one(divide_up(packs, HeldRows::kChunkPacks));
    return at_least_one(divide_up(rows, tile_rows)) * (cuts_rows() ? row_chunks().tiles : cluster_blocks);
  }
  bool shares_weights() const { return weights == Weights::shared; }
  bool is_in_shared() const { return staging == Staging::shared && !is_in_tiles(); }
  bool begins_anywhere() const {  ///< rms_norm_row.cuh
    return !is_aligned && staging != Staging::direct && !is_in_tiles();
  }

  /// Elements of a row for each thread of a tile, at least and at most. Winners are verified on rows that are a pack
  /// shorter, too.
  std::int64_t least_each() const {
    const std::int64_t pack = pack_bytes_of(problem) / element_bytes(problem);
    return least_elements_each(problem, row_threads, pack);
  }
  std::int64_t elements_each() const { return most_elements_each(problem, row_threads); }
  std::int64_t rows_of_tile_thread() const {
    constexpr std::int64_t kMostRows = 16;
    const std::int64_t row_bytes = at_least_one(center_of(problem, 1) * element_bytes(problem));
    return std::clamp<std::int64_t>(packs_per_thread * kMaxAlignment * row_threads / row_bytes, 1, kMostRows);
  }

  RowChunks row_chunks() const { return row_chunks(rows, problem.extents[1]); }
  RowChunks row_chunks(std::int64_t of_rows, std::int64_t of_columns) const {
    constexpr std::int64_t kMostPartials = (kWorkspaceBytes - kWorkspaceHeaderBytes) / sizeof(float);
    const std::int64_t row_packs = of_columns * element_bytes(problem) / pack_bytes;
    const std::int64_t tiles_of_row = at_least_one(divide_up(row_packs, block_threads * packs_per_thread));
    return {scope, combine, of_rows, tiles_of_row, kMostPartials};
  }

  HeldRows held_rows(std::int64_t of_columns, std::int64_t blocks) const {
    return {at_least_one(of_columns * element_bytes(problem) / pack_bytes), blocks, ring_kib, row_groups};
  }
  /// Threads that read packs of a chunk together.
  std::int64_t chunk_threads() const {
    return is_held() ? held_rows(problem.extents[1], 1).group_threads(block_threads) : block_threads;
  }
  std::int64_t launched_threads() const {
    return is_held() ? held_rows(problem.extents[1], 1).launched_threads(block_threads) : block_threads;
  }

  /// Packs for each thread to hold in shared memory: as many as it has room for, or as a row has beside the registers.
  std::int64_t shared_room() const { return smem_kib * 1024 / (block_threads * pack_bytes); }
  std::int64_t shared_packs() const {
    return std::clamp<std::int64_t>(divide_up(packs, row_threads) - packs_per_thread, 0, shared_room());
  }
  std::int64_t smem_bytes() const {
    return is_held()          ? std::int64_t{ring_kib} * 1024
           : is_in_tiles()    ? tile_smem_bytes(problem.extents[1])
           : shares_weights() ? weights_bytes()
                              : shared_packs() * block_threads * pack_bytes;
  }
  std::int64_t weights_bytes() const { return packs_per_thread * (block_threads + 3) * pack_bytes; }  ///< kSegment
  std::int64_t tile_smem_bytes(std::int64_t columns) const {
    return 2 * (divide_up(tile_rows * columns * element_bytes(problem), kMaxAlignment) + 1) * kMaxAlignment;
  }

  bool is_in_lanes() const { return scope == Scope::warp && !is_in_tiles(); }

  /// The instructions of an element in lanes: those of a row for each of them, of its packs, which rows may not fill,
  /// and of their elements. 2^19 rows of 50 f16 take 32 lanes 48.7 µs, 16 lanes 37.6 and 8 lanes 36.6, 2^18 of 100 f16
  /// 32 lanes 36.9 and 16 lanes 35.9 (H100, CUDA 13.0, 2026-11-27).
  double lane_instructions() const {
    constexpr double kRow = 58, kPack = 5, kElement = 5.5, kOfWeight = 4, kOfResidual = 4;
    const auto elements = static_cast<double>(pack_bytes / element_bytes(problem));
    const double of_element =
        kElement + (has_weight(problem) ? kOfWeight : 0) + (has_residual(problem) ? kOfResidual : 0);
    const double of_pack = kPack * static_cast<double>(streams) + of_element * elements;
    return static_cast<double>(row_threads) * (kRow + packs_per_thread * of_pack) /
           static_cast<double>(at_least_one(problem.extents[1]));
  }

  /// The registers of what a thread holds while rows are loaded, weights included.
  std::int64_t registers() const {
    if (is_in_tiles()) return elements_each() * (has_weight(problem) ? 2 : 1);
    const std::int64_t words = packs_per_thread * divide_up(pack_bytes, 4);
    return words * (rows_per_thread * streams + (has_weight(problem) && !shares_weights()));
  }

  Reason is_valid(const DeviceFacts& facts) const {
    constexpr std::int64_t kMostStaticBytes = 2048;  // beside it
    const std::int64_t most_singles = 4 * pack_bytes / element_bytes(problem);
    return first_reason({check_blocks(facts, block_threads, cluster_blocks),
                         check_smem(facts, is_in_tiles()      ? tile_smem_bytes(last_of(problem, 1))
                                           : is_in_shared()   ? smem_kib * 1024 + kMostStaticBytes
                                           : shares_weights() ? weights_bytes() + kMostStaticBytes
                                                              : 0),
                         reason_if(is_in_tiles() && is_aligned, "tiles in shared memory are of misaligned rows"),
                         reason_if(is_in_tiles() && has_residual(problem), "tiles are of one array"),
                         reason_if(is_in_tiles() && rows_per_thread > 1, "tiles have rows for all of their loads"),
                         reason_if(is_in_tiles() && elements_each() > kMostElementsEach,
                                   "a lane has more elements than the registers hold"),
                         reason_if(scope == Scope::warp && staging == Staging::shifted,
                                   "the lanes of a warp have packs that all rows are made of"),
                         reason_if(staging == Staging::shifted && is_aligned, "rows begin with packs of 16 bytes"),
                         reason_if(shares_weights() && !has_weight(problem), "no weights to share"),
                         reason_if(begins_anywhere() && row_threads < most_singles,
                                   "a row has more elements outside of packs than threads"),
                         row_chunks(last_of(problem, 0), last_of(problem, 1)).is_valid(),
                         is_held() ? held_is_valid(facts) : Reason()});
  }

  Reason held_is_valid(const DeviceFacts& facts) const {
    return first_reason({reason_if(has_residual(problem), "rows to which a residual is added are not held"),
                         HeldRows::check_block(block_threads),
                         held_rows(last_of(problem, 1), facts.sm_count)
                             .is_valid(facts, last_of(problem, 0), static_cast<std::int64_t>(sizeof(float)))});
  }

  Unit tiles_unit() const {
    return unit_of(
        fmt::format("#include \"rms_norm_tiles.cuh\"\n\n"
                    "using Kernel = hone::RmsNormTiles<{}, {}, {}, {}, {}, {}, {}, {}>;\n"
                    "static_assert(sizeof(hone::RmsNormArguments) == {}, \"host and device disagree\");\n",
                    info(problem.dtype).cuda_name, index_type(needs_wide_index(problem, 0)), has_weight(problem),
                    block_threads, row_threads, least_each(), elements_each(), rows_at_once,
                    sizeof(RmsNormArguments)),
        {kernel_entry("Kernel::run", *this)});
  }

  Unit unit() const {
    if (is_in_tiles()) return tiles_unit();
    const std::int64_t elements = pack_bytes / element_bytes(problem);
    const bool is_grid = scope == Scope::grid;
    const std::string pack = is_grid ? fmt::format("{}", is_aligned) : fmt::format("{}", elements);
    const bool reads_twice = last_of(problem, 1) / elements > row_threads * (packs_per_thread + shared_room());
    const std::string row =
        is_grid ? ""
                : fmt::format(", {}, {}, {}, {}, {}, hone::AlignedIn::{}, {}", row_threads, packs_per_thread,
                              rows_per_thread, reads_twice, begins_anywhere(), is_in_shared() ? "x" : "y",
                              shares_weights());
    Unit unit = unit_of(
        fmt::format("#include \"{}.cuh\"\n\n"
                    "using Kernel = hone::RmsNorm{}<{}, {}, {}, {}{}, {}{}>;\n"
                    "static_assert(sizeof(hone::RmsNormArguments) == {}, \"host and device disagree\");\n",
                    is_held()        ? "rms_norm_held"
                    : cuts_rows()    ? "rms_norm_chunks"
                    : is_in_shared() ? "rms_norm_shared"
                                     : "rms_norm",
                    is_held() ? "Held" : cuts_rows() ? "Chunks" : "", info(problem.dtype).cuda_name,
                    index_type(needs_wide_index(problem, 1)), pack, has_weight(problem),
                    is_held() ? "" : fmt::format(", {}", has_residual(problem)), chunk_threads(), row,
                    sizeof(RmsNormArguments)),
        {});
    if (is_held()) held_rows(problem.extents[1], 1).add_to(unit, packs_per_thread, block_threads, min_blocks);
    else if (cuts_rows()) row_chunks().add_to(unit, packs_per_thread, block_threads, min_blocks);
    else if (!is_in_shared()) unit.entries = {kernel_entry("Kernel::run", *this)};
    else
      unit.entries = {kernel_entry(
          fmt::format("hone::RmsNormShared<Kernel, {}, {}>::run", block_threads, begins_anywhere()), *this)};
    return unit;
  }

  WorkShape shape() const {
    const std::int64_t all = at_least_one(packs), held = std::min(all, held_packs);
    const double read_twice = static_cast<double>(all - held) / static_cast<double>(all);
    const std::int64_t tile = is_in_shared() ? 4 : 0;  // of the residuals in shared memory: kTile of shared_packs.cuh
    const std::int64_t residuals = (streams - 1) * std::min(all, row_threads * (packs_per_thread + tile));
    const std::int64_t held_bytes = tile_rows * (held + residuals) * pack_bytes / cluster_blocks;
    const std::int64_t rest_bytes =  // kRestPacks of rms_norm.cuh
        std::int64_t{block_threads} * std::min(packs_per_thread, 2) * streams * pack_bytes;
    WorkShape shape{.dynamic_smem_bytes = static_cast<std::uint32_t>(smem_bytes()),
                    .tiles = tiles(),
                    .bytes_in_flight_per_block = cuts_rows() ? block_threads * packs_per_thread * streams * pack_bytes
                                                             : mean_in_flight(held, all, held_bytes, rest_bytes),
                    .launches = row_chunks().launches(),
                    .cooperative = is_held(),
                    .traffic = (1 + read_twice / static_cast<double>(2 * streams)) *  // as many arrays are written
                               (is_in_lanes() ? traffic_of_lanes(divide_up(packs, row_threads), row_threads) : 1),
                    .independent_blocks = scope != Scope::grid && !shares_weights(),
                    .pipeline_fill_latencies = exposed_latencies(),
                    .thread_gbps = static_cast<double>(2 * streams * element_bytes(problem)) / element_ns()};
    const auto bytes_of_element = static_cast<double>(2 * streams * element_bytes(problem));
    if (is_in_lanes()) shape.instructions_per_byte = lane_instructions() / bytes_of_element;
    if (is_in_tiles()) {
      shape.round_latencies = kTileRoundLatencies;
      shape.instructions_per_byte = tile_instructions() / bytes_of_element;
    }
    if (scope == Scope::cluster) shape.cluster_sm_gbps = kClusterSmGbps;
    constexpr double kItemLatencies = 2.4;  // of a pipeline
    row_chunks().add_to(shape, shape.traffic - 1, problem.extents[1] * element_bytes(problem), kItemLatencies);
    if (is_held()) held_rows(problem.extents[1], 1).add_to(shape, rows, 0.5, block_threads);  // as much is written
    return shape;
  }

  /// The instructions of an element in tiles, by SASS of sm_90 (CUDA 13.0, 2026-11-27), with those of a row for each of
  /// its lanes: of threads with rows to themselves, for whose columns there is code (row_tiles.cuh), and of others.
  double tile_instructions() const {
    constexpr double kUnrolled = 6, kUnrolledRow = 25, kElement = 10, kLane = 45;
    const auto columns = static_cast<double>(at_least_one(center_of(problem, 1)));
    if (row_threads == 1 && elements_each() <= kMostUnrolledColumns) return kUnrolled + kUnrolledRow / columns;
    return kElement + kLane * static_cast<double>(row_threads) / columns;
  }

  /// The ns that a thread takes for an element that it holds, one after the other: where few threads hold long rows,
  /// that is what they take. 64 rows of 2^20 f16 in shared memory take clusters of 16 blocks of 128, 256 and 512
  /// threads 113, 102 and 98 µs, with weights 145, 119 and 122, and 3 rows with weights and residuals, which are loaded
  /// meanwhile, 30, 20.9 and 17.0 (H100, CUDA 13.0, 2026-11-26).
  double element_ns() const {
    constexpr double kPlain = 6, kWeight = 9, kResidual = 22;
    return kPlain + (has_weight(problem) ? kWeight : 0) + (has_residual(problem) ? kResidual : 0);
  }

  /// The memory latencies of a row in which a cluster that has its SMs to itself loads less than it could. It exchanges
  /// sums and, in registers, loads the next row when this one has been written: 64 rows of 2^20 f16 take 104 µs so, 1.4
  /// µs a row more than their bytes (H100, CUDA 13.0, 2026-11-26).
  double exposed_latencies() const {
    constexpr double kLatencyNs = 550, kRowLatencies = 2.7;
    constexpr std::int64_t kRegistersOfHalfAnSm = 32768, kOtherRegisters = 30;
    if (scope != Scope::cluster) return 0;
    if (!is_in_shared())
      return block_threads * (registers() + kOtherRegisters) > kRegistersOfHalfAnSm ? kRowLatencies : 0;
    return kRowLatencies + static_cast<double>(divide_up(problem.extents[1], row_threads)) * element_ns() / kLatencyNs;
  }

  std::int64_t grid(std::int64_t max_blocks) const {
    return is_held() ? max_blocks : whole_clusters(max_blocks, tiles(), cluster_blocks);
  }
  std::int64_t chunks(std::int64_t max_blocks) const { return row_chunks().count(grid(max_blocks)); }

  void encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace, LaunchList& launches) const {
    std::size_t next = 0;
    RmsNormArguments arguments{};
    arguments.x = buffers[next++];
    if (has_residual(problem)) arguments.residual = buffers[next++];
    if (has_weight(problem)) arguments.weight = buffers[next++];
    arguments.y = buffers[next++];
    if (has_residual(problem)) arguments.h = buffers[next++];
    arguments.rows = static_cast<std::uint64_t>(rows);
    arguments.columns = static_cast<std::uint64_t>(problem.extents[1]);
    arguments.in_pitch = pitch_of(problem, 0);
    arguments.out_pitch = pitch_of(problem, 1);
    arguments.mean_factor = 1 / static_cast<float>(at_least_one(problem.extents[1]));
    arguments.eps = static_cast<float>(eps_of(problem));
    arguments.shared_packs = static_cast<unsigned>(shared_packs());
    arguments.workspace = workspace;
    if (is_held()) {
      held_rows(problem.extents[1], grid(max_blocks)).set(arguments);
    } else {
      arguments.chunks = static_cast<unsigned>(chunks(max_blocks));
      arguments.lag = static_cast<unsigned>(row_chunks().lag(grid(max_blocks)));
    }
    for (int entry = 0; entry < row_chunks().launches(); ++entry) {
      Launch& launch = add_launch(launches, grid(max_blocks), launched_threads(), arguments, entry, cluster_blocks);
      launch.dynamic_smem_bytes = static_cast<std::uint32_t>(smem_bytes());
      launch.cooperative = is_held();
    }
  }

  /// The additions of a pack's squares, of the packs of a thread, of its lanes, warps and blocks; then of chunks.
  std::int64_t longest_chain(std::int64_t max_blocks) const {
    const std::int64_t of_row = chunks(max_blocks);
    if (is_in_tiles()) return elements_each() + 16;
    if (is_held())
      return pack_bytes / element_bytes(problem) + divide_up(packs, chunk_threads() * max_blocks) + 16 +
             divide_up(max_blocks, 32) + 16;
    return pack_bytes / element_bytes(problem) + divide_up(packs, row_threads * at_least_one(of_row)) + 16 +
           (of_row > 0 ? divide_up(of_row, block_threads) + 16 : 0);
  }
};

}  // namespace hone::rms_norm
