#include "runtime/families/softmax_row_layout.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace hone {
namespace {

using Way = SoftmaxRowPolicy::Way;

constexpr std::size_t kRowThreads = 0, kBlockThreads = 1, kHold = 2;

// Values of row_threads: lanes of a group up to 32, then these.
constexpr int kWholeBlock = 100, kChunks = 200, kPipeline = 201;

/// Values of `hold` from here on are KiB of shared memory, below packs in registers.
constexpr int kLeastSmemKib = 48;

/// Elements of a row that a thread of a tile takes one by one.
constexpr std::int64_t kMostElementsEach = 24;

/// In registers: 1024 threads have 64 each, of which 8 packs leave too few (24 to 40 bytes spilled on sm_90, CUDA
/// 13.0).
constexpr int kMostPacksPerBlock = 1024 * 6;

/// Rows of fewer bytes a block are no work for several blocks.
constexpr std::int64_t kLeastBytesPerBlock = 4096;

/// Two launches and a second reading of everything cost more than a block that is busy for a while.
constexpr std::int64_t kLeastChunkedBytes = 32768;

/// Shorter rows have not enough chunks for all blocks of a pipeline, which then holds too many rows in L2.
constexpr std::int64_t kLeastPipelinedBytes = 128 * 1024;

/// Of a chunk, at once: of more, few blocks hold too many bytes of rows in L2 (and f64 spills).
constexpr int kMostPipelinedPacks = 2048;

}  // namespace

SoftmaxRowPolicy::SoftmaxRowPolicy(const Policy& policy) : block_threads(policy[kBlockThreads]) {
  const int threads = policy[kRowThreads];
  const int hold = policy[kHold];
  (hold < kLeastSmemKib ? packs : smem_kib) = hold;
  if (threads == kChunks || threads == kPipeline) {
    way = threads == kChunks ? Way::chunks : Way::pipeline;
  } else if (threads > kWholeBlock) {
    way = Way::cluster;
    cluster_blocks = threads - kWholeBlock;
  } else if (threads < kWholeBlock) {
    way = smem_kib > 0 ? Way::tiles : Way::group;
    group_lanes = threads;
  }
}

ParameterSpace softmax_row_space() {
  return ParameterSpace(
      {{"row_threads",
        {1, 2, 4, 8, 16, 32, kWholeBlock, 102, 104, 108, 116, kChunks, kPipeline},
        {"1", "2", "4", "8", "16", "32", "block", "cluster_2", "cluster_4", "cluster_8", "cluster_16", "chunks",
         "pipeline"}},
       {"block_threads", {128, 256, 512, 1024}},
       {"hold",
        {1, 2, 3, 4, 6, 8, kLeastSmemKib, 112, 224},
        {"1", "2", "3", "4", "6", "8", "shared_48", "shared_112", "shared_224"}}});
}

SoftmaxRowLayout::SoftmaxRowLayout(const Problem& problem, const Policy& of)
    : policy(of),
      traits(problem),
      rows(problem.extents[0]),
      columns(problem.extents[1]),
      center_packs(std::max<std::int64_t>(1, center_of(problem, 1) / traits.pack_elements)),
      row_threads(policy.group_lanes > 0 ? policy.group_lanes
                                          : std::int64_t{policy.block_threads} * policy.cluster_blocks),
      is_aligned(problem.alignment >= kMaxAlignment) {
  if (policy.way == Way::group) {
    row_packs = divide_up(center_packs, row_threads);
    rows_at_once = std::max<std::int64_t>(1, policy.packs / row_packs);
  } else if (policy.way == Way::tiles) {
    // Winners are verified on rows that are shorter by one, too.
    least_each = std::max<std::int64_t>(0, first_of(problem, 1) - 1) / row_threads;
    elements_each = std::max<std::int64_t>(1, divide_up(last_of(problem, 1), row_threads));
    // Two 16-byte loads a thread in flight.
    const std::int64_t row_bytes = center_of(problem, 1) * traits.in_bytes;
    rows_at_once = std::clamp<std::int64_t>(2 * kMaxAlignment * row_threads / row_bytes, 1, 8);
  } else {
    row_packs = policy.packs;
  }
}

std::int64_t SoftmaxRowLayout::shared_packs(std::int64_t packs_of_row) const {
  const std::int64_t room = policy.smem_kib * 1024 / (policy.block_threads * pack_in_bytes());
  return std::min(room, divide_up(packs_of_row, row_threads));
}

std::int64_t SoftmaxRowLayout::tile_smem_bytes(std::int64_t of_columns) const {
  const auto area = [&](std::int64_t bytes) { return divide_up(tile_rows() * of_columns * bytes, 16) * 16 + 16; };
  return area(traits.in_bytes) + area(traits.out_bytes);
}

std::int64_t SoftmaxRowLayout::smem_bytes(std::int64_t of_columns) const {
  if (policy.way == Way::tiles) return tile_smem_bytes(of_columns);
  if (policy.smem_kib == 0) return 0;
  return shared_packs(of_columns / traits.pack_elements) * policy.block_threads * pack_in_bytes();
}

std::int64_t SoftmaxRowLayout::held_packs(std::int64_t packs_of_row) const {
  if (policy.way == Way::tiles) return packs_of_row;
  if (policy.cuts_rows()) return 0;
  return row_threads * (policy.smem_kib > 0 ? shared_packs(packs_of_row) : row_packs);
}

std::int64_t SoftmaxRowLayout::tiles() const {
  switch (policy.way) {
    case Way::group:
    case Way::tiles: return std::max<std::int64_t>(1, divide_up(rows, tile_rows()));
    case Way::block:
    case Way::cluster: return std::max<std::int64_t>(1, rows) * policy.cluster_blocks;
    case Way::chunks:
    case Way::pipeline: break;
  }
  return std::max<std::int64_t>(1, rows) * chunk_tiles();
}

std::int64_t SoftmaxRowLayout::chunk_tiles() const {
  return std::max<std::int64_t>(
      1, divide_up(packs(), std::int64_t{policy.block_threads} * std::max(1, policy.packs)));
}

std::int64_t SoftmaxRowLayout::grid(std::int64_t max_blocks) const {
  const std::int64_t cluster = policy.cluster_blocks;
  return std::max(cluster, std::min(max_blocks, tiles()) / cluster * cluster);
}

std::int64_t SoftmaxRowLayout::chunks(std::int64_t max_blocks) const {
  if (policy.way == Way::pipeline) return std::min(chunk_tiles(), traits.most_partials() / kPipelinedRows);
  const std::int64_t row_count = std::max<std::int64_t>(1, rows);
  const std::int64_t most = std::max<std::int64_t>(1, std::min(chunk_tiles(), traits.most_partials() / row_count));
  return best_chunks(grid(max_blocks), row_count, most);
}

std::int64_t SoftmaxRowLayout::lag(std::int64_t max_blocks) const {
  return std::min(kPipelinedRows - 1, 1 + divide_up(grid(max_blocks), chunks(max_blocks)));
}

std::int64_t SoftmaxRowLayout::partials(std::int64_t max_blocks) const {
  return (policy.way == Way::pipeline ? kPipelinedRows : rows) * chunks(max_blocks);
}

std::string SoftmaxRowLayout::reject(const Problem& problem, const DeviceFacts& facts) const {
  if (policy.block_threads > facts.max_threads_per_block)
    return fmt::format("{} threads a block, the device allows {}", policy.block_threads, facts.max_threads_per_block);
  switch (policy.way) {
    case Way::group: return reject_group();
    case Way::tiles: return reject_tiles(problem, facts);
    case Way::chunks: return reject_chunks(problem);
    case Way::pipeline: return reject_pipeline(problem, facts);
    default: return reject_block(facts);
  }
}

std::string SoftmaxRowLayout::reject_group() const {
  if (policy.block_threads > 256) return "groups of lanes need no blocks of more than 256 threads";
  if (policy.group_lanes > center_packs)
    return fmt::format("a row has {} packs for {} lanes", center_packs, policy.group_lanes);
  if (policy.packs % row_packs != 0 || !std::has_single_bit(static_cast<unsigned>(policy.packs)))
    return fmt::format("{} packs a thread hold no whole rows of {} packs", policy.packs, center_packs);
  if (rows_at_once > 4) return fmt::format("{} rows at once are more than the registers hold", rows_at_once);
  if (!is_aligned && policy.group_lanes < 8)
    return "the elements outside of packs, which rows that are not aligned have, want 8 lanes or more";
  return "";
}

std::string SoftmaxRowLayout::reject_tiles(const Problem& problem, const DeviceFacts& facts) const {
  if (is_aligned) return "aligned rows need no tiles in shared memory";
  if (policy.smem_kib != kLeastSmemKib) return "tiles take the shared memory that they need";
  if (policy.group_lanes > center_of(problem, 1))
    return fmt::format("a row has {} elements for {} lanes", center_of(problem, 1), policy.group_lanes);
  if (elements_each > kMostElementsEach)
    return fmt::format("{} elements a lane are more than the registers hold", elements_each);
  const std::int64_t bytes = tile_smem_bytes(last_of(problem, 1));
  if (bytes > facts.smem_bytes_per_block_optin)
    return fmt::format("a tile needs {} bytes of shared memory, the device has {}", bytes,
                       facts.smem_bytes_per_block_optin);
  return "";
}

std::string SoftmaxRowLayout::reject_chunks(const Problem& problem) const {
  if (policy.smem_kib > 0 || !std::has_single_bit(static_cast<unsigned>(policy.packs)))
    return "chunks hold no packs";
  if (center_packs * pack_in_bytes() < kLeastChunkedBytes) return "a row is too short to be cut into chunks";
  if (last_of(problem, 0) > traits.most_partials())
    return fmt::format("{} rows have more partial results than the workspace", last_of(problem, 0));
  return "";
}

std::string SoftmaxRowLayout::reject_pipeline(const Problem& problem, const DeviceFacts& facts) const {
  if (policy.smem_kib > 0 || !std::has_single_bit(static_cast<unsigned>(policy.packs)))
    return "chunks hold no packs";
  const int chunk_packs = policy.block_threads * policy.packs;
  if (chunk_packs > kMostPipelinedPacks || policy.block_threads > 512 || policy.packs == 1)
    return "chunks so large or small do not fill a pipeline";
  const std::int64_t row_bytes = center_packs * pack_in_bytes();
  if (row_bytes < kLeastPipelinedBytes) return "a row is too short to be cut into chunks that follow each other";
  if (size_ranges(problem.extents)[0].first < 4) return "few rows have no others to be published meanwhile";
  if (facts.l2_bytes > 0 && 4 * row_bytes > facts.l2_bytes)
    return fmt::format("rows of {} bytes have left L2 when they are read again", row_bytes);
  return "";
}

std::string SoftmaxRowLayout::reject_block(const DeviceFacts& facts) const {
  if (policy.cluster_blocks > std::max(1, facts.max_cluster_blocks))
    return fmt::format("clusters of {} blocks, the device allows {}", policy.cluster_blocks, facts.max_cluster_blocks);
  if (row_threads > center_packs) return fmt::format("a row has {} packs for {} threads", center_packs, row_threads);
  const std::int64_t row_bytes = center_packs * pack_in_bytes();
  if (policy.cluster_blocks > 1 && row_bytes < policy.cluster_blocks * kLeastBytesPerBlock)
    return fmt::format("rows of {} bytes are too short for {} blocks", row_bytes, policy.cluster_blocks);

  const std::int64_t held = held_packs(center_packs);
  if (policy.smem_kib > 0) {
    if (policy.smem_kib * 1024 + 2048 > facts.smem_bytes_per_block_optin)
      return fmt::format("{} KiB of shared memory, the device has {} bytes", policy.smem_kib,
                         facts.smem_bytes_per_block_optin);
    if (policy.smem_kib > kLeastSmemKib && smem_bytes(center_packs * traits.pack_elements) <= policy.smem_kib * 512)
      return "less shared memory would do";
    if (held * 2 < center_packs) return fmt::format("holds {} of the {} packs of a row", held, center_packs);
    return "";
  }
  if (policy.block_threads * policy.packs > kMostPacksPerBlock)
    return fmt::format("{} packs a thread of {} threads are more than the registers hold", policy.packs,
                       policy.block_threads);
  if (held > 2 * center_packs) return fmt::format("has room for {} packs, a row has {}", held, center_packs);
  // Where nothing else can, a large block reads what it does not hold twice.
  const bool is_last_resort = policy.cluster_blocks == 1 && policy.packs == 8 && policy.block_threads == 512;
  if (held < center_packs && !is_last_resort)
    return fmt::format("holds {} of the {} packs of a row", held, center_packs);
  return "";
}

}  // namespace hone
