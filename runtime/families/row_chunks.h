// RowChunks: the chunks that a grid cuts long rows into (row_chunks.cuh, row_pipeline.cuh), and opinions on them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "runtime/families/built_in_family.h"
#include "runtime/families/counts.h"
#include "runtime/families/work_division.h"

namespace hone {

/// Into how many chunks, at most `most`, each of `lines` is cut for so many blocks: what leaves the fewest of them idle
/// in the last round, few rather than many.
std::int64_t best_chunks(std::int64_t blocks, std::int64_t lines, std::int64_t most);

/// The bytes in flight of a block, in the mean over the time that loading takes: `held_bytes` while it loads the `held`
/// of a row's packs that it keeps, and `rest_bytes` in the loop over the rest.
constexpr std::int64_t mean_in_flight(std::int64_t held, std::int64_t row_packs, std::int64_t held_bytes,
                                      std::int64_t rest_bytes) {
  if (held >= row_packs || rest_bytes >= held_bytes) return held_bytes;
  const double of_rest = static_cast<double>(row_packs - held) / static_cast<double>(row_packs);
  return static_cast<std::int64_t>(
      1 / ((1 - of_rest) / static_cast<double>(at_least_one(held_bytes)) + of_rest / static_cast<double>(rest_bytes)));
}

struct RowChunks {
  /// Rows whose partial results a pipeline keeps (kRing of row_pipeline.cuh).
  static constexpr std::int64_t kPipelinedRows = 16;

  /// Chunks of a call that the 32-bit tickets of row_pipeline.cuh count: two items each, and two for each block.
  static constexpr std::int64_t kMostPipelinedChunks = std::int64_t{1} << 30;

  Scope scope;  ///< of a row; a grid cuts it
  Combine combine;
  std::int64_t rows;
  std::int64_t tiles;          ///< of a row: loads of a whole block, which more chunks could not share out
  std::int64_t most_partials;  ///< that a workspace has room for

  bool cuts_rows() const { return scope == Scope::grid && combine != Combine::held; }
  bool is_pipeline() const { return cuts_rows() && combine == Combine::pipeline; }
  int launches() const { return cuts_rows() && !is_pipeline() ? 2 : 1; }

  /// The chunks of each row, in a grid of so many blocks; 0 where rows are whole.
  std::int64_t count(std::int64_t blocks) const {
    if (!cuts_rows()) return 0;
    if (is_pipeline()) return std::min(tiles, most_partials / kPipelinedRows);
    const std::int64_t row_count = at_least_one(rows);
    return best_chunks(blocks, row_count, at_least_one(std::min(tiles, most_partials / row_count)));
  }

  /// Rows whose chunks are published before one of the first is written: while all blocks have an item and a ticket for
  /// the next, half of them to publish, nothing is taken that waits.
  std::int64_t lag(std::int64_t blocks) const {
    return is_pipeline() ? std::min(kPipelinedRows - 1, 1 + divide_up(blocks, count(blocks))) : 0;
  }

  /// A pipeline reads rows of `row_bytes` again, which is the part `reread` of its traffic, after a row and a chunk of
  /// each block. It has latencies of its own: blocks wait for a ticket, for loads, and for each other's warps,
  /// `item_latencies` for an item and more for a large chunk; tickets and counters of items follow each other in 5.6
  /// ns; and behind the last of them partials are waited for. 64 rows of 2^20 f16 take softmax by chunks of 8 KiB in
  /// 132, 264 and 528 blocks 554, 298 and 202 µs, by chunks of 32 KiB 182, 121 and 137, and two kernels 144. Fitted
  /// with L2's part (model.cpp) to 517 candidates (H100, CUDA 13.0, 2026-11-27). Two kernels read the rows again, too,
  /// those that were read last first, but L2 has few of them, or there are so few that latencies are what counts.
  void add_to(WorkShape& shape, double reread, std::int64_t row_bytes, double item_latencies) const {
    constexpr double kTicketLatencies = 5.6 / 550, kLastLatencies = 6.5, kLatenciesOfMib = 25;
    if (!is_pipeline()) return;
    const double chunk_mib = static_cast<double>(shape.bytes_in_flight_per_block) / (1 << 20);
    shape.reread_traffic = reread;
    shape.reread_distance_bytes = row_bytes;
    shape.reread_distance_tiles = 1;
    shape.round_latencies = item_latencies + kLatenciesOfMib * chunk_mib;
    shape.latencies_between_tiles = 2 * kTicketLatencies;
    shape.pipeline_fill_latencies = kLastLatencies;
  }

  /// Adds the entries of a unit that defines Kernel; a thread has so many loads in flight.
  void add_to(Unit& unit, std::int32_t packs_per_thread, std::int32_t block_threads, MinBlocks min_blocks) const;

  /// Kernels count the chunks of so many rows, the longest of which have `tiles`, in 32 bits and in their workspace.
  Reason is_valid() const {
    return first_reason(
        {reason_if(launches() == 2 && rows > most_partials, "rows have more partial results than the workspace"),
         reason_if(is_pipeline() && rows > kMostPipelinedChunks / count(1),
                   "rows have more chunks than a pipeline counts in 32 bits")});
  }
};

// A View describes a typical row: is_chunks(), where two kernels read its chunks, or is_pipeline(); row_bytes, and
// center_packs of 16 bytes.
template <class View>
inline constexpr std::array<PruneRule<View>, 6> kChunkRules{{
    {"a row is too short to be cut into chunks: two launches and a second reading of everything cost more than a block "
     "that is busy for a while",
     kNotMeasured, [](const View& v) { return v.is_chunks() && v.row_bytes < 32 * 1024; }},
    {"chunks so small do not fill a pipeline, and of larger ones few blocks hold too many bytes of rows in L2",
     "106.1 % for softmax (H100, prune_rules)",
     [](const View& v) {
       constexpr int kMostPacks = 2048;  // of a chunk, that a block holds at once
       return v.is_pipeline() &&
              (v.block_threads * v.packs_per_thread > kMostPacks || v.block_threads > 512 || v.packs_per_thread == 1);
     }},
    {"a row has not enough chunks for all blocks of a pipeline", "24 times as slow for softmax (H100, prune_rules)",
     [](const View& v) { return v.is_pipeline() && v.row_bytes < 128 * 1024; }},
    {"the rows that a pipeline keeps have fewer chunks than it has blocks, which then wait for each other",
     "softmax of rows of 2^16 bf16, f16 and f32 by chunks of 16 KiB takes 3.4 to 5.9 times as long as by clusters, 23 "
     "to 33 ns for each item of work, however many there are (H100, CUDA 13.0, 2026-11-25)",
     [](const View& v) {
       const std::int64_t half_occupancy = v.facts.max_threads_per_sm / 2 / v.block_threads * v.facts.sm_count;
       return v.is_pipeline() && (RowChunks::kPipelinedRows - 2) * v.center_packs <
                                     half_occupancy * v.block_threads * v.packs_per_thread;
     }},
    {"few rows have no others to be published meanwhile", kNotMeasured,
     [](const View& v) { return v.is_pipeline() && first_of(v.problem, 0) < 4; }},
    {"rows have left L2 when they are read again", kNotMeasured,
     [](const View& v) { return v.is_pipeline() && v.facts.l2_bytes > 0 && 4 * v.row_bytes > v.facts.l2_bytes; }},
}};

}  // namespace hone
