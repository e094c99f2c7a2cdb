#include "runtime/families/softmax/softmax_row_layout.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace hone {
namespace {

using Algorithm = SoftmaxRowPolicy::Algorithm;

/// Elements of a row that a thread of a tile takes one by one.
constexpr std::int64_t kMostElementsEach = 24;

/// Of shared memory in KiB: less would do only where this is the least.
constexpr int kLeastSmemKib = 48;

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

SoftmaxRowPolicy::Algorithm SoftmaxRowPolicy::algorithm() const {
  switch (scope) {
    case Scope::warp: return staging == Staging::shared ? Algorithm::tiles : Algorithm::group;
    case Scope::block: return Algorithm::block;
    case Scope::cluster: return Algorithm::cluster;
    case Scope::grid: break;
  }
  return combine == Combine::pipeline ? Algorithm::pipeline : Algorithm::chunks;
}

const ParameterSpace& SoftmaxRowPolicy::space() {
  using P = SoftmaxRowPolicy;
  static const ParameterSpace space = space_of<P>(
      PolicyField{&P::scope, scope_parameter({Scope::warp, Scope::block, Scope::cluster, Scope::grid})},
      PolicyField{&P::threads_per_row,
                  ordinal("threads_per_row", {1, 2, 4, 8, 16, 32}).only_if("scope", {Scope::warp})},
      PolicyField{&P::cluster_blocks,
                  ordinal("cluster_blocks", {2, 4, 8, 16}).only_if("scope", {Scope::cluster}).otherwise(1)},
      PolicyField{&P::combine, combine_parameter({Combine::second_kernel, Combine::pipeline})
                                   .only_if("scope", {Scope::grid})
                                   .otherwise(static_cast<std::int32_t>(Combine::second_kernel))},
      PolicyField{&P::block_threads, ordinal("block_threads", {128, 256, 512, 1024})},
      PolicyField{&P::staging, staging_parameter({Staging::direct, Staging::shared})
                                   .only_if("scope", {Scope::warp, Scope::block, Scope::cluster})},
      PolicyField{&P::packs_per_thread,
                  ordinal("packs_per_thread", {1, 2, 3, 4, 6, 8}).only_if("staging", {Staging::direct})},
      PolicyField{&P::smem_kib, ordinal("smem_kib", {48, 112, 224})
                                    .only_if("scope", {Scope::block, Scope::cluster})
                                    .only_if("staging", {Staging::shared})});
  return space;
}

SoftmaxRowLayout::SoftmaxRowLayout(const Problem& problem, const Policy& of)
    : policy(of.as<SoftmaxRowPolicy>()),
      algorithm(policy.algorithm()),
      traits(problem),
      rows(problem.extents[0]),
      columns(problem.extents[1]),
      center_columns(center_of(problem, 1)),
      center_packs(std::max<std::int64_t>(1, center_columns / traits.pack_elements)),
      row_threads(policy.threads_per_row > 0 ? policy.threads_per_row
                                          : std::int64_t{policy.block_threads} * policy.cluster_blocks),
      is_aligned(problem.alignment >= kMaxAlignment) {
  if (algorithm == Algorithm::group) {
    row_packs = divide_up(center_packs, row_threads);
    rows_at_once = std::max<std::int64_t>(1, policy.packs_per_thread / row_packs);
  } else if (algorithm == Algorithm::tiles) {
    // Winners are verified on rows that are shorter by one, too.
    least_each = std::max<std::int64_t>(0, first_of(problem, 1) - 1) / row_threads;
    elements_each = std::max<std::int64_t>(1, divide_up(last_of(problem, 1), row_threads));
    // Two 16-byte loads a thread in flight.
    const std::int64_t row_bytes = center_columns * traits.in_bytes;
    rows_at_once = std::clamp<std::int64_t>(2 * kMaxAlignment * row_threads / row_bytes, 1, 8);
  } else {
    row_packs = policy.packs_per_thread;
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
  if (algorithm == Algorithm::tiles) return tile_smem_bytes(of_columns);
  if (policy.smem_kib == 0) return 0;
  return shared_packs(of_columns / traits.pack_elements) * policy.block_threads * pack_in_bytes();
}

std::int64_t SoftmaxRowLayout::held_packs(std::int64_t packs_of_row) const {
  if (algorithm == Algorithm::tiles) return packs_of_row;
  if (policy.cuts_rows()) return 0;
  return row_threads * (policy.smem_kib > 0 ? shared_packs(packs_of_row) : row_packs);
}

std::int64_t SoftmaxRowLayout::tiles() const {
  switch (algorithm) {
    case Algorithm::group:
    case Algorithm::tiles: return std::max<std::int64_t>(1, divide_up(rows, tile_rows()));
    case Algorithm::block:
    case Algorithm::cluster: return std::max<std::int64_t>(1, rows) * policy.cluster_blocks;
    case Algorithm::chunks:
    case Algorithm::pipeline: break;
  }
  return std::max<std::int64_t>(1, rows) * chunk_tiles();
}

std::int64_t SoftmaxRowLayout::chunk_tiles() const {
  return std::max<std::int64_t>(
      1, divide_up(packs(), std::int64_t{policy.block_threads} * std::max(1, policy.packs_per_thread)));
}

std::int64_t SoftmaxRowLayout::grid(std::int64_t max_blocks) const {
  const std::int64_t cluster = policy.cluster_blocks;
  return std::max(cluster, std::min(max_blocks, tiles()) / cluster * cluster);
}

std::int64_t SoftmaxRowLayout::chunks(std::int64_t max_blocks) const {
  if (algorithm == Algorithm::pipeline) return std::min(chunk_tiles(), traits.most_partials() / kPipelinedRows);
  const std::int64_t row_count = std::max<std::int64_t>(1, rows);
  const std::int64_t most = std::max<std::int64_t>(1, std::min(chunk_tiles(), traits.most_partials() / row_count));
  return best_chunks(grid(max_blocks), row_count, most);
}

std::int64_t SoftmaxRowLayout::lag(std::int64_t max_blocks) const {
  return std::min(kPipelinedRows - 1, 1 + divide_up(grid(max_blocks), chunks(max_blocks)));
}

std::string SoftmaxRowLayout::is_valid(const ProblemClass& problem_class, const DeviceFacts& facts) const {
  if (policy.block_threads > facts.max_threads_per_block)
    return fmt::format("{} threads a block, the device allows {}", policy.block_threads, facts.max_threads_per_block);
  if (policy.cluster_blocks > std::max(1, facts.max_cluster_blocks))
    return fmt::format("clusters of {} blocks, the device allows {}", policy.cluster_blocks, facts.max_cluster_blocks);
  switch (algorithm) {
    case Algorithm::group:
      if (policy.packs_per_thread % row_packs != 0)
        return fmt::format("{} packs a thread hold no whole rows of {} packs", policy.packs_per_thread, center_packs);
      return "";
    case Algorithm::tiles:
      if (is_aligned) return "tiles in shared memory are of rows that are not aligned";
      if (elements_each > kMostElementsEach)
        return fmt::format("{} elements a lane are more than the registers hold", elements_each);
      if (const std::int64_t bytes = tile_smem_bytes(problem_class.sizes()[1].last);
          bytes > facts.smem_bytes_per_block_optin)
        return fmt::format("a tile needs {} bytes of shared memory, the device has {}", bytes,
                           facts.smem_bytes_per_block_optin);
      return "";
    case Algorithm::block:
    case Algorithm::cluster:
      if (policy.smem_kib * 1024 + 2048 > facts.smem_bytes_per_block_optin && policy.smem_kib > 0)
        return fmt::format("{} KiB of shared memory, the device has {} bytes", policy.smem_kib,
                           facts.smem_bytes_per_block_optin);
      return "";
    case Algorithm::chunks:
      if (problem_class.sizes()[0].last > traits.most_partials())
        return fmt::format("{} rows have more partial results than the workspace", problem_class.sizes()[0].last);
      return "";
    case Algorithm::pipeline: return "";
  }
  return "";
}

std::string SoftmaxRowLayout::prune(const ProblemClass& problem_class, const DeviceFacts& facts) const {
  switch (algorithm) {
    case Algorithm::group: return prune_group();
    case Algorithm::tiles: return prune_tiles();
    case Algorithm::chunks: return prune_chunks();
    case Algorithm::pipeline: return prune_pipeline(problem_class, facts);
    default: return prune_block();
  }
}

std::string SoftmaxRowLayout::prune_group() const {
  if (policy.block_threads > 256) return "groups of lanes need no blocks of more than 256 threads";
  if (policy.threads_per_row > center_packs)
    return fmt::format("a row has {} packs for {} lanes", center_packs, policy.threads_per_row);
  if (!std::has_single_bit(static_cast<unsigned>(policy.packs_per_thread)))
    return "packs a thread in powers of two are enough of a choice";
  if (rows_at_once > 4) return fmt::format("{} rows at once are more than the registers hold", rows_at_once);
  if (!is_aligned && policy.threads_per_row < 8)
    return "the elements outside of packs, which rows that are not aligned have, want 8 lanes or more";
  return "";
}

std::string SoftmaxRowLayout::prune_tiles() const {
  if (policy.threads_per_row > center_columns)
    return fmt::format("a row has {} elements for {} lanes", center_columns, policy.threads_per_row);
  return "";
}

std::string SoftmaxRowLayout::prune_chunks() const {
  if (!std::has_single_bit(static_cast<unsigned>(policy.packs_per_thread)))
    return "loads at once in powers of two are enough of a choice";
  if (center_packs * pack_in_bytes() < kLeastChunkedBytes) return "a row is too short to be cut into chunks";
  return "";
}

std::string SoftmaxRowLayout::prune_pipeline(const ProblemClass& problem_class, const DeviceFacts& facts) const {
  if (!std::has_single_bit(static_cast<unsigned>(policy.packs_per_thread)))
    return "loads at once in powers of two are enough of a choice";
  const int chunk_packs = policy.block_threads * policy.packs_per_thread;
  if (chunk_packs > kMostPipelinedPacks || policy.block_threads > 512 || policy.packs_per_thread == 1)
    return "chunks so large or small do not fill a pipeline";
  const std::int64_t row_bytes = center_packs * pack_in_bytes();
  if (row_bytes < kLeastPipelinedBytes) return "a row is too short to be cut into chunks that follow each other";
  if (problem_class.sizes()[0].first < 4) return "few rows have no others to be published meanwhile";
  if (facts.l2_bytes > 0 && 4 * row_bytes > facts.l2_bytes)
    return fmt::format("rows of {} bytes have left L2 when they are read again", row_bytes);
  return "";
}

std::string SoftmaxRowLayout::prune_block() const {
  if (row_threads > center_packs) return fmt::format("a row has {} packs for {} threads", center_packs, row_threads);
  const std::int64_t row_bytes = center_packs * pack_in_bytes();
  if (policy.cluster_blocks > 1 && row_bytes < policy.cluster_blocks * kLeastBytesPerBlock)
    return fmt::format("rows of {} bytes are too short for {} blocks", row_bytes, policy.cluster_blocks);

  const std::int64_t held = held_packs(center_packs);
  if (policy.smem_kib > 0) {
    if (policy.smem_kib > kLeastSmemKib && smem_bytes(center_packs * traits.pack_elements) <= policy.smem_kib * 512)
      return "less shared memory would do";
    if (held * 2 < center_packs) return fmt::format("holds {} of the {} packs of a row", held, center_packs);
    return "";
  }
  if (policy.block_threads * policy.packs_per_thread > kMostPacksPerBlock)
    return fmt::format("{} packs a thread of {} threads are more than the registers hold", policy.packs_per_thread,
                       policy.block_threads);
  if (held > 2 * center_packs) return fmt::format("has room for {} packs, a row has {}", held, center_packs);
  // Where nothing else can, a large block reads what it does not hold twice.
  const bool is_last_resort =
      policy.cluster_blocks == 1 && policy.packs_per_thread == 8 && policy.block_threads == 512;
  if (held < center_packs && !is_last_resort)
    return fmt::format("holds {} of the {} packs of a row", held, center_packs);
  return "";
}

}  // namespace hone
