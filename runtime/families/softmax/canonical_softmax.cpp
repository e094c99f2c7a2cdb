#include "runtime/families/softmax/canonical_softmax.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "runtime/families/softmax/canonical_powers.h"

namespace hone {
namespace {

/// Groups compute so long that they load meanwhile: 2^17 rows of 201 f16 took 44.4 µs, 41.8 so, and 40.9 with twice the
/// rows in a tile, too; log-softmax 45.7, and 42.2 with twice the rows (H100, CUDA 13.0, 2026-11-28). Threads with rows
/// to themselves do not, nor do kernels with fast numerics, which lose 1 % by it.
constexpr std::int64_t kAreasOfGroups = 2;
constexpr std::int64_t kMostHeldByHalf = 32;  ///< elements of a lane, where half of the threads are resident
/// The registers of a lane's elements where three quarters of the threads are resident: log-softmax of 2^20 rows of 64
/// f32 takes 8 lanes of two packs 127.6 µs so, and 136.5 with half of the threads (H200, CUDA 13.0, 2026-11-30).
constexpr std::int64_t kMostRegistersOfMany = 16;

/// The packs of a ring that a thread writes at once, at most. 64 rows of 2^20 f16, which three groups take in turn, take
/// 97.4 µs with four packs and 99.2 with two; 4 of 2^24, which one takes, 97 and 93 (H200, CUDA 13.0, 2026-11-30).
constexpr std::int32_t held_tile(std::int32_t row_groups) { return row_groups > 1 ? 4 : 2; }

constexpr std::int64_t kFoundPlaces = 4 + 2;           ///< of rows, and of those that are summed again
constexpr std::int64_t kNormPlaces = 2;                ///< of what results of a row are made of
constexpr std::int64_t kMostRingRows = std::int64_t{1} << 31;
constexpr std::int64_t kMostSmemOfWarps = 112 * 1024;  ///< that hold rows, of a block

/// Spans for each block of a grid, at most: the last round of a grid is the shorter, the shorter they are.
constexpr std::int64_t kSpansOfBlock = 4;

/// The instructions of an element in tiles, by SASS of sm_90, and those of a row for each of its lanes: of threads with
/// rows to themselves, for whose columns there is code, and of others; more for weights with all digits, and for the
/// logarithm of a sum.
constexpr double kElementInstructions = 14, kFullInstructions = 5;
constexpr double kUnrolledRowInstructions = 30, kLaneInstructions = 100, kLogInstructions = 75;

/// The same where lanes hold packs of rows that begin anywhere, and those of a pack, which the row may not fill: 2^19
/// rows of 50 f16 take 4 lanes of 4 packs 66 µs, 8 of 2 81, 16 of 1 144 (H100, CUDA 13.0, 2026-11-28). Then of rows
/// that begin at packs: 2^17 rows of 200 f16 take 8 lanes of 4 packs 29.7 µs, 16 of 2 35.3 (H200, 2026-11-30).
constexpr double kPackElementInstructions = 22, kTurnedPackInstructions = 60, kTurnedLaneInstructions = 290;
constexpr double kAlignedElementInstructions = 16, kAlignedLaneInstructions = 150, kReadTwice = 2;

/// The instructions of an element where the warps of a block have chunks of rows, with what they exchange.
constexpr double kBlockElementInstructions = 21;

/// The memory latencies of a round in which the blocks of a cluster meet before they load again: 1024 rows of 65536 f32
/// take clusters of 8 blocks with 32 elements a lane 134 µs, of 16 with 16 144; 8192 of 8192 f16 take clusters of two
/// 69.8, and single blocks 72.0 (H200, CUDA 13.0, 2026-11-30).
double cluster_latencies(std::int32_t blocks) { return std::log2(blocks); }

}  // namespace

CanonicalSoftmax::CanonicalSoftmax(const Problem& of, const Policy& policy)
    : SoftmaxRowPolicy(policy.as<SoftmaxRowPolicy>()), problem(of) {
  if (has_tiles) tile_of_lanes = {problem, traits, threads_per_row, threads_per_row > 1 ? kAreasOfGroups : 1};
  if (scope != Scope::warp || is_in_shared) return;
  const auto packs_of = [&](std::int64_t length) {
    const std::int64_t packs = divide_up(at_least_one(length), threads_per_row * pack);
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(packs)));
  };
  row_packs = packs_of(last_of(problem, 1));
  whole_packs = std::min(row_packs, packs_of(center_of(problem, 1)));
  of_lanes = threads_per_row * row_packs * pack;
}

Reason CanonicalSoftmax::is_valid(const DeviceFacts& facts) const {
  const bool is_by_lanes = scope == Scope::warp && !is_in_shared;
  const bool takes_batches = scope != Scope::warp && !is_in_shared;
  const std::int64_t most_smem = smem_kib > 0 ? smem_kib * 1024 : kMostSmemOfWarps;
  if (Reason reason = check_blocks(facts, block_threads, cluster_blocks); !reason.empty()) return reason;
  if (is_held()) return held_is_valid(facts);
  if (is_ring) return ring_is_valid(facts);
  if (has_tiles) return tiles_are_valid(facts);
  return first_reason(
      {check_smem(facts, smem_bytes(last_of(problem, 1)) + exchanged_bytes()),
       reason_if(combine == Combine::pipeline, "reproducible rows are in no pipeline"),
       reason_if(is_in_shared && smem_bytes(last_of(problem, 1)) > most_smem, "shared memory does not hold the row"),
       reason_if(is_by_lanes && !std::has_single_bit(static_cast<unsigned>(packs_per_thread)),
                 "lanes hold a power of two of packs"),
       reason_if(is_by_lanes && (of_lanes > most_of_lanes() || whole_packs > packs_per_thread),
                 "lanes do not hold the row"),
       reason_if(scope == Scope::cluster && !is_in_shared && last_of(problem, 1) > 2 * tile * cluster_blocks,
                 "a cluster does not hold half of the row"),
       reason_if(cuts_rows() && 2 * last_of(problem, 0) > traits.most_partials(),
                 "rows have more partial results than the workspace"),
       reason_if(takes_batches && chunks_at_once * 4 != packs_per_thread, "a warp takes whole chunks"),
       reason_if(takes_batches && !std::has_single_bit(static_cast<unsigned>(chunks_at_once)),
                 "a warp takes a power of two of chunks")});
}

Reason CanonicalSoftmax::held_is_valid(const DeviceFacts& facts) const {
  const HeldRows longest = held_rows(last_of(problem, 1), facts.sm_count);
  return first_reason(
      {reason_if(pack * traits.in_bytes != HeldRows::kPackBytes, "held are rows of packs of 16 bytes"),
       reason_if(packs_per_thread != 4, "a warp takes a chunk of a row that is held at a time"),
       HeldRows::check_block(block_threads),
       longest.is_valid(facts, last_of(problem, 0), static_cast<std::int64_t>(traits.state_bytes()))});
}

Reason CanonicalSoftmax::ring_is_valid(const DeviceFacts& facts) const {
  const std::int64_t longest = last_of(problem, 1);
  return first_reason(
      {reason_if(!has_bulk_copies(facts), "the device has no bulk copies"), check_smem(facts, ring_bytes(longest)),
       reason_if(scope == Scope::warp, "a ring is for rows that several warps share"),
       reason_if(pack * traits.in_bytes != kMaxAlignment, "rings are of packs of 16 bytes"),
       reason_if(last_of(problem, 0) > kMostRingRows, "rows are more than a ring counts in 32 bits"),
       reason_if(chunks_of_block(longest) > row_warps(), "a row has more chunks than there are warps"),
       reason_if(ring_bytes(longest) > smem_kib * 1024, "shared memory does not hold the row and the next one")});
}

Reason CanonicalSoftmax::tiles_are_valid(const DeviceFacts& facts) const {
  const std::int64_t longest = last_of(problem, 1);
  return first_reason({check_smem(facts, smem_bytes(longest)),
                       reason_if(is_aligned, "tiles in shared memory are of misaligned rows"),
                       reason_if(longest > chunk, "lanes hold a chunk of a row at most"),
                       reason_if(tile_of_lanes.elements_each > kMostElementsInWords,
                                 "a lane has more elements than the registers hold")});
}

HeldRows CanonicalSoftmax::held_rows(std::int64_t of_columns, std::int64_t blocks) const {
  const std::int64_t packs = at_least_one(divide_up(of_columns, pack)), longest = last_of(problem, 1) / pack;
  const auto sum_bytes = static_cast<std::int64_t>(info(traits.accumulator).size_bytes);
  return {packs, blocks, ring_kib, row_groups,
          HeldParts::of_tree(packs, blocks, 2 * sum_bytes, sum_bytes, is_aligned,
                             HeldRows::one_warp_combines(longest, ring_kib, row_groups))};
}

MinBlocks CanonicalSoftmax::bounds_of_held(std::int64_t elements) const {
  const std::int64_t registers = elements * info(traits.accumulator).size_bytes / 4;
  const bool has_few = scope == Scope::warp && registers <= kMostRegistersOfMany && rows_at_once() <= 2;
  if (has_few) return MinBlocks::three_quarters;
  return elements <= kMostHeldByHalf ? MinBlocks::one_half : MinBlocks::unset;
}

std::int64_t CanonicalSoftmax::most_of_lanes() const {
  return threads_per_row < 32 ? chunk : 32 / pack * chunk;
}

Unit CanonicalSoftmax::unit() const {
  std::string source = fmt::format(
      "#include \"{}\"\n\n"
      "using Types = hone::CanonicalSoftmaxTypes<{}, {}, {}, {}, {}, {}, {}>;\n"
      "static_assert(hone::kChunkElements<Types::In> == {}, \"host and device disagree\");\n",
      is_ring        ? "canonical_softmax_ring.cuh"
      : has_tiles    ? "canonical_softmax_tiles.cuh"
      : is_in_shared ? "canonical_softmax_shared.cuh"
      : is_held()    ? "canonical_softmax_held.cuh"
                     : "canonical_softmax_rows.cuh",
      info(traits.in).cuda_name,
      info(traits.out).cuda_name, info(traits.accumulator).cuda_name,
      index_type(needs_wide_index(problem, 1)), traits.is_log, pack, is_aligned, chunk);
  // Code for long rows and for other weights takes twice the registers that the rows held do, if it may.
  const auto held = [&](std::string_view kernel, std::int64_t columns_held, std::int64_t elements_in_registers) {
    const MinBlocks bounds = min_blocks == MinBlocks::unset ? bounds_of_held(elements_in_registers) : min_blocks;
    source += fmt::format(
        "using Kernel = {};\nstatic_assert(Kernel::kHeldColumns == {}, \"host and device disagree\");\n", kernel,
        columns_held);
    return unit_of(source, {kernel_entry("Kernel::run", block_threads, bounds)});
  };
  if (is_ring) {
    source += fmt::format(
        "using Kernel = hone::CanonicalSoftmaxRing<Types, {}, {}, {}>;\n"
        "static_assert(Kernel::kSlotBytes == {} && Kernel::kKeptBytes == {} && sizeof(Kernel::Shared) == {},\n"
        "              \"host and device disagree\");\n",
        block_threads, cluster_blocks, chunks_of_lane(), ring_slot_bytes(), kept_bytes(), ring_static_bytes());
    return unit_of(source, {kernel_entry("Kernel::run", block_threads, MinBlocks::one_half)});
  }
  if (has_tiles) {
    source += fmt::format("using Kernel = hone::CanonicalSoftmaxTiles<Types, {}, {}, {}, {}, {}, {}>;\n", block_threads,
                          threads_per_row, tile_of_lanes.least_each, tile_of_lanes.elements_each,
                          tile_of_lanes.of_thread, tile_of_lanes.in_areas);
    return unit_of(source, {kernel_entry("Kernel::run", *this)});
  }
  if (is_in_shared) {
    source += fmt::format("using Kernel = hone::CanonicalSoftmaxShared<Types, {}, {}, {}>;\n"
                          "static_assert(Kernel::kSlotBytes == {}, \"host and device disagree\");\n",
                          block_threads, row_warps(), cluster_blocks, slot_bytes());
    return unit_of(source, {kernel_entry("Kernel::run", *this)});
  }
  if (is_held()) {
    const HeldRows held_in = held_rows(columns, 1);
    Unit unit;
    unit.source = source + fmt::format("using Kernel = hone::CanonicalSoftmaxHeld<Types, {}>;\n",
                                       held_in.group_threads(block_threads));
    held_in.add_to(unit, held_tile(row_groups), block_threads, min_blocks);
    return unit;
  }
  if (scope == Scope::warp)
    return held(fmt::format("hone::CanonicalSoftmaxLanes<Types, {}, {}, {}, {}, {}>", block_threads, threads_per_row,
                            whole_packs, rows_at_once(), row_packs > whole_packs),
                of_lanes, held_elements());
  if (is_on_chip) {
    source += fmt::format(
        "static_assert(hone::kChunksInShared<Types, {0}> == {1} && hone::KeptPacks<Types>::kPackBytes == {2},\n"
        "              \"host and device disagree\");\n",
        chunks_at_once, chunks_in_shared(), kept_bytes() * pack / chunk);
    return held(fmt::format("hone::CanonicalSoftmaxBlock<Types, {}, {}, {}>", block_threads, chunks_at_once,
                            cluster_blocks),
                tile * cluster_blocks, (chunks_at_once - chunks_in_shared()) * chunk / 32);
  }
  source += fmt::format("using Kernel = hone::CanonicalSoftmax{}<Types, {}, {}>;\n"
                        "static_assert(Kernel::kTileBytes == {}, \"host and device disagree\");\n",
                        cuts_rows() ? "Spans" : "Rows", block_threads, chunks_at_once, tile * traits.in_bytes);
  if (!cuts_rows()) return unit_of(source, {kernel_entry("Kernel::run", *this)});
  return unit_of(source, {kernel_entry("Kernel::publish", *this), kernel_entry("Kernel::write", *this)});
}

WorkShape CanonicalSoftmax::shape() const {
  const std::int64_t count = at_least_one(rows);
  const std::int64_t row_bytes = at_least_one(columns) * traits.in_bytes;
  WorkShape shape{.dynamic_smem_bytes = static_cast<std::uint32_t>(smem_bytes(columns)),
                  .independent_blocks = !cuts_rows() && !is_held(),
                  .loads_ahead = loads_ahead()};
  if (scope == Scope::warp) {
    shape.tiles = divide_up(count, tile_rows());
    const bool is_by_chunk = is_in_shared && !has_tiles;
    shape.bytes_in_flight_per_block = tile_rows() * (is_by_chunk ? std::min(row_bytes, kChunkBytes) : row_bytes);
    if (has_tiles && tile_of_lanes.in_areas == 1) shape.round_latencies = kTileRoundLatencies;
    shape.instructions_per_byte = instructions_per_byte();
    if (!is_in_shared)
      shape.traffic = traffic_of_lanes(divide_up(at_least_one(columns), threads_per_row * pack), threads_per_row);
    return shape;
  }
  if (is_held()) {
    shape.tiles = count * divide_up(at_least_one(columns), HeldRows::kChunkPacks * pack);
    shape.cooperative = true;
    held_rows(columns, 1).add_to(shape, rows, traits.traffic(1, 1) - 1, block_threads);
    return shape;
  }
  shape.block_threads = static_cast<int>(launched_threads());
  shape.most_block_threads = block_threads;
  shape.cluster_blocks = static_cast<int>(launched_blocks());
  shape.tiles = count * (cuts_rows() ? row_tiles() : launched_blocks());
  shape.launches = cuts_rows() ? 2 : 1;
  shape.instructions_per_byte = instructions_per_byte();
  if (cluster_blocks > 1 && !is_ring) shape.round_latencies = cluster_latencies(cluster_blocks);
  shape.bytes_in_flight_per_block = is_ring ? chunks_of_block(columns) * kChunkBytes
                                            : std::min(row_bytes / launched_blocks(), tile * traits.in_bytes);
  if (!is_on_chip) shape.traffic = traits.traffic(2, 1);
  else if (!is_in_shared && columns > tile * cluster_blocks) shape.traffic = traits.traffic(1, 1);
  return shape;
}

bool CanonicalSoftmax::loads_ahead() const {
  const bool prefetches = scope == Scope::block && is_on_chip && !is_in_shared;
  return prefetches || is_ring || tile_of_lanes.in_areas > 1;
}

double CanonicalSoftmax::instructions_per_byte() const {
  const double of_full = traits.out_bytes > 2 ? kFullInstructions : 0;
  const auto bytes = static_cast<double>(traits.in_bytes + traits.out_bytes);
  if (scope != Scope::warp) return (kBlockElementInstructions + of_full) / bytes;
  const std::int64_t length = center_of(problem, 1);
  const double of_log = traits.is_log ? kLogInstructions : 0;
  double of_lane = kLaneInstructions, of_element = kElementInstructions;
  if (has_tiles && threads_per_row == 1 && tile_of_lanes.elements_each <= kMostUnrolledColumns) {
    of_lane = kUnrolledRowInstructions;
  } else if (!has_tiles) {
    const auto packs = static_cast<double>(divide_up(length, threads_per_row * pack));
    of_lane = is_aligned ? kAlignedLaneInstructions
                         : kTurnedLaneInstructions + kTurnedPackInstructions * static_cast<double>(whole_packs);
    of_element = (is_aligned ? kAlignedElementInstructions : kPackElementInstructions) * packs * threads_per_row *
                 static_cast<double>(pack) / static_cast<double>(length);
    if (reads_twice() && columns > threads_per_row * whole_packs * pack) of_element *= kReadTwice;
  }
  return (of_element + of_full + (of_lane + of_log) * threads_per_row / static_cast<double>(length)) / bytes;
}

Spans CanonicalSoftmax::spans(std::int64_t max_blocks) const {
  if (scope == Scope::warp && (!is_in_shared || has_tiles)) return {};
  if (is_on_chip) {
    const std::int64_t chunks = chunks_of_block(columns);
    return {.levels = Spans::of(chunks, row_warps()).levels, .count = chunks};
  }
  if (!cuts_rows()) return Spans::of(row_tiles(), kMostSpanRounds);
  const std::int64_t count = at_least_one(rows);
  const std::int64_t room = traits.most_partials() / count - 1;  // the counters of a row take no more than a span
  const std::int64_t most = std::min({most_partials(block_threads), kSpansOfBlock * max_blocks / count, room});
  return Spans::of(row_tiles(), at_least_one(most));
}

std::int64_t CanonicalSoftmax::chunks_of_block(std::int64_t of_columns) const {
  const std::int64_t chunks = at_least_one(divide_up(of_columns, chunk));
  if (cluster_blocks == 1) return chunks;
  if (is_ring) return divide_up(chunks, ring_blocks(of_columns));
  return at_least_one(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(chunks))) / cluster_blocks);
}

std::int64_t CanonicalSoftmax::smem_bytes(std::int64_t of_columns) const {
  if (has_tiles) return tile_of_lanes.smem_bytes(tile_rows(), of_columns);
  if (is_held()) return ring_kib * 1024;
  if (is_ring) return chunks_of_block(of_columns) * (ring_slot_bytes() + kept_bytes());
  if (is_in_shared) return block_threads / 32 / row_warps() * chunks_of_block(of_columns) * slot_bytes();
  return is_on_chip ? row_warps() * chunks_in_shared() * kept_bytes() : 0;
}

std::int64_t CanonicalSoftmax::exchanged_bytes() const {
  if (row_warps() == 1) return 0;
  return 2 * (static_cast<std::int64_t>(traits.state_bytes()) * (row_warps() + cluster_blocks) + 8);
}

std::int64_t CanonicalSoftmax::launched_blocks() const {
  if (cluster_blocks == 1) return 1;
  if (is_ring) return ring_blocks(columns);
  return std::max<std::int64_t>(2, divide_up(divide_up(columns, chunk), chunks_of_block(columns)));
}

std::int64_t CanonicalSoftmax::launched_threads() const {
  if (is_ring) return 32 * chunks_of_block(columns);
  if (is_held()) return held_rows(columns, 1).launched_threads(block_threads);
  if (scope == Scope::warp || !is_on_chip) return block_threads;
  return 32 * Spans::of(chunks_of_block(columns), row_warps()).count;
}

std::int64_t CanonicalSoftmax::most_blocks(const Geometry& geometry) const {
  const std::int64_t most = geometry.max_blocks, threads = launched_threads(), were_threads = geometry.block_threads;
  const bool is_persistent = !geometry.is_block_per_tile() && rows * launched_blocks() > most;
  if (!is_persistent || were_threads == 0 || were_threads == threads) return most;
  const std::int64_t of_sm = threads_of_sm(min_blocks == MinBlocks::unset ? MinBlocks::one_half : min_blocks);
  const auto resident = [&](std::int64_t of_block) { return at_least_one(of_sm / of_block); };
  return at_least_one(most * resident(threads) / resident(were_threads));
}

std::int64_t CanonicalSoftmax::chunks_of_lane() const {
  const std::int64_t chunks = at_least_one(divide_up(last_of(problem, 1), chunk));
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(divide_up(chunks, 32))));
}

std::int64_t CanonicalSoftmax::ring_blocks(std::int64_t of_columns) const {
  const std::int64_t wanted = divide_up(divide_up(of_columns, chunk), row_warps());
  return std::clamp<std::int64_t>(wanted, std::min(cluster_blocks, 2), cluster_blocks);
}

std::int64_t CanonicalSoftmax::ring_static_bytes() const {
  const auto of_state = static_cast<std::int64_t>(traits.state_bytes());
  const std::int64_t of_place = 8 + 32 * chunks_of_lane() * of_state, of_norms = 32 + kNormPlaces * 2 * of_state;
  return row_warps() * (8 + 4) + kFoundPlaces * of_place + of_norms;
}

void CanonicalSoftmax::encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace,
                              LaunchList& launches) const {
  const std::int64_t of_cluster = launched_blocks();
  const Spans division = is_held() ? Spans{} : spans(max_blocks);
  const std::int64_t blocks = scope == Scope::warp ? divide_up(rows, tile_rows())
                              : is_held()          ? max_blocks
                              : cuts_rows()        ? rows * division.count
                                                   : rows * of_cluster;
  const std::int64_t grid = at_least_one(std::min(blocks, max_blocks) / of_cluster) * of_cluster;
  const Rows in_rows{.rows = rows, .length = columns, .pitch = SoftmaxBase::pitch(problem, 0)};
  const auto in = reinterpret_cast<std::uintptr_t>(buffers[0]);
  const InputBytes input{in, in + static_cast<std::uintptr_t>(in_rows.elements() * traits.in_bytes)};
  with_accumulator(traits, [&]<class Acc>(Acc) {
    const SoftmaxFactors<Acc> factors = softmax_factors<Acc>(problem);
    const SoftmaxArguments<Acc> of_rows{.in = buffers[0],
                                        .out = buffers[1],
                                        .workspace = workspace,
                                        .rows = static_cast<std::uint64_t>(rows),
                                        .columns = static_cast<std::uint64_t>(columns),
                                        .in_pitch = SoftmaxBase::pitch(problem, 0),
                                        .out_pitch = SoftmaxBase::pitch(problem, 1),
                                        .scale = factors,
                                        .chunks = static_cast<unsigned>(division.count),
                                        .packs_per_thread = 0,
                                        .lag = 0,
                                        .run_levels = static_cast<unsigned>(division.levels)};
    CanonicalSoftmaxArguments<Acc> arguments{of_rows, canonical::guessed_factors(factors.factor), input};
    if (is_held()) {
      const HeldRows held = held_rows(columns, max_blocks);
      held.set(arguments);
      arguments.run_levels = static_cast<unsigned>(held.parts.run_levels);
      arguments.kept_rows = static_cast<unsigned>(held.kept_rows());
    }
    for (int entry = 0; entry < (cuts_rows() ? 2 : 1); ++entry) {
      Launch& launch = add_launch(launches, grid, launched_threads(), arguments);
      launch.entry = entry;
      launch.dynamic_smem_bytes = static_cast<std::uint32_t>(smem_bytes(columns));
      launch.cluster_blocks = static_cast<unsigned>(of_cluster);
      launch.cooperative = is_held();
    }
  });
}

}  // namespace hone
