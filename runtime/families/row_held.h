// HeldRows: the parts of long rows that each block of a grid holds in a ring of chunks (row_held.cuh).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "runtime/families/built_in_family.h"
#include "runtime/families/counts.h"
#include "runtime/families/work_division.h"

namespace hone {

// The parameters of policies that hold rows: the shared memory of a block, and groups of its warps that take rows in
// turn.
inline Parameter ring_parameter() { return ordinal("ring_kib", {216, 88, 32}).only_if("combine", {Combine::held}); }
inline Parameter row_groups_parameter() {
  return ordinal("row_groups", {1, 2}).only_if("combine", {Combine::held}).otherwise(1);
}

struct HeldRows {
  /// Rows that a ring holds at once, their States in the workspace, and chunks of a ring (kMostRows, kRing and
  /// kMostSlots of row_held.cuh).
  static constexpr std::int64_t kMostRows = 14, kStateRows = 28, kMostSlots = 64;

  static constexpr std::int64_t kPackBytes = 16, kLinePacks = 8;

  /// Packs of a chunk, at most: 16 KiB. Where some chunks are read twice, two for each thread of a group of 13 warps,
  /// which a block of 1024 threads has: 4 rows of 2^24 f16 take softmax 120.5 µs so, and 123.6 by 1000 packs (H100,
  /// CUDA 13.0, 2026-11-27).
  static constexpr std::int64_t kChunkPacks = 1024, kPassingChunkPacks = 2 * 13 * 32;

  /// Slots that chunks which are read twice pass through.
  static constexpr std::int64_t kPassingSlots = 3;

  /// The loads that a block has in flight.
  static constexpr std::int64_t kInFlightBytes = 50 * 1024;

  /// The static shared memory of a block, at most: mbarriers, and the States of its warps and rows.
  static constexpr std::int64_t kMostStaticBytes = 6 * 1024;

  /// The ring has room for so much besides the part of a row that waits for other blocks: bytes in flight, and the
  /// chunk that is written.
  static constexpr std::int64_t kLeastAheadBytes = 32 * 1024;

  /// Rows of fewer bytes are held by clusters.
  static constexpr std::int64_t kLeastRowBytes = std::int64_t{3} << 19;

  std::int64_t row_packs;  ///< of the longest row
  std::int64_t blocks;
  std::int64_t ring_kib;
  std::int64_t row_groups;  ///< of warps that take rows in turn

  /// A row may begin within a line, and parts are whole lines.
  std::int64_t part_packs = whole_lines(divide_up(row_packs + kLinePacks - 1, blocks));
  bool has_room_for_part = part_packs * kPackBytes <= ring_kib * 1024;
  std::int64_t chunks = divide_up(part_packs, has_room_for_part ? kChunkPacks : kPassingChunkPacks);  ///< of a part
  std::int64_t slot_packs = whole_lines(divide_up(part_packs, chunks));
  std::int64_t slot_bytes = slot_packs * kPackBytes;
  std::int64_t slots = std::min({ring_kib * 1024 / slot_bytes, kMostRows * chunks, kMostSlots});

  /// Chunks of a part that are held until they are written; the others pass through slots of their own, twice.
  std::int64_t passing_slots = slots < chunks ? std::clamp<std::int64_t>(slots - 1, 0, kPassingSlots) : 0;
  std::int64_t held_slots = slots - passing_slots;
  std::int64_t held_chunks = std::min(held_slots, chunks);
  std::int64_t in_flight =
      std::clamp<std::int64_t>(kInFlightBytes / slot_bytes, 1, at_least_one(passing_slots > 0 ? passing_slots : slots));

  static std::int64_t whole_lines(std::int64_t packs) { return divide_up(packs, kLinePacks) * kLinePacks; }

  bool are_held_whole() const { return held_chunks == chunks; }
  bool fit() const { return are_held_whole() ? slots >= row_groups * chunks : row_groups == 1 && passing_slots > 0; }
  bool fit_twice() const { return slots >= 2 * chunks; }

  /// Loads are in flight while blocks wait for each other.
  bool have_room() const {
    return !are_held_whole() || ring_kib * 1024 >= part_packs * kPackBytes + kLeastAheadBytes;
  }

  Reason is_valid(const DeviceFacts& facts, std::int64_t rows, std::int64_t state_bytes) const;
  static Reason check_block(std::int32_t block_threads) {
    return reason_if(block_threads < 512, "a block has too few warps for the roles that hold rows");
  }

  /// The memory latencies that a grid which holds rows takes longer than a copy: until its first row is known to all
  /// blocks, after its last, and where blocks wait for each other. Softmax of 64 rows of 2^20 f16 and f32 takes 104 and
  /// 197 µs, of 16 of 3000017 f16 and f32 79 and 147, where copies take 92, 180, 67 and 131 (H100, CUDA 13.0,
  /// 2026-11-26).
  ///
  /// `reread` is the traffic of rows that are read for the second time.
  void add_to(WorkShape& shape, std::int64_t rows, double reread) const {
    constexpr double kHeldLatencies = 28;
    shape.bytes_in_flight_per_block = std::min(kInFlightBytes, ring_kib * 1024);
    shape.pipeline_fill_latencies = kHeldLatencies;
    shape.traffic += reread;
    shape.reread_traffic = reread;
    shape.reread_distance_bytes = row_packs * kPackBytes;
    shape.held_bytes_per_block = ring_kib * 1024;
    shape.held_rows = rows;
  }

  /// The threads of a group of a block (HeldRoles), of which so many add up rows and as many write them: all warps but
  /// six.
  static constexpr std::int32_t group_threads(std::int32_t block_threads, std::int32_t row_groups) {
    return (block_threads / 32 - 6) / (2 * row_groups) * 32;
  }

  /// Adds the entry of a unit that defines Kernel, with group_threads() threads.
  static void add_to(Unit& unit, std::int32_t loads, std::int32_t block_threads, std::int32_t row_groups,
                     MinBlocks min_blocks);
};

// A View describes a typical row: is_held(), and held_rows_of_all_sms() where it is.
template <class View>
inline constexpr std::array<PruneRule<View>, 6> kHeldRules{{
    {"threads of this device run one after the other, and hide no loads", kNotMeasured,
     [](const View& v) { return v.is_held() && is_host(v.facts); }},
    {"the one block of an SM may have all registers", kNotMeasured,
     [](const View& v) { return v.is_held() && v.min_blocks != MinBlocks::one; }},
    {"two or four packs of shared memory at once are enough of a choice", kNotMeasured,
     [](const View& v) { return v.is_held() && v.packs_per_thread != 2 && v.packs_per_thread != 4; }},
    {"a larger ring fits the SM", kNotMeasured,
     [](const View& v) { return v.is_held() && v.ring_kib * 1024 < v.facts.smem_bytes_per_block_optin / 2; }},
    {"nothing can be loaded while blocks wait for each other", kNotMeasured,
     [](const View& v) { return v.is_held() && !v.held_rows_of_all_sms().have_room(); }},
    {"so little of a row is held that two kernels, which have more threads, may as well read it twice",
     "softmax of 4 x 2^24 f32, of which a third is held, takes 250 µs so and 278 by two kernels, of 1 x 10^8, of which "
     "5 % are, 418 and 430; the bound between them was not measured (H100, CUDA 13.0, 2026-11-27)",
     [](const View& v) {
       if (!v.is_held()) return false;
       const HeldRows held = v.held_rows_of_all_sms();
       return 8 * held.held_chunks < held.chunks;
     }},
}};

}  // namespace hone
