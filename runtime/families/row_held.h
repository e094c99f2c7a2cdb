// HeldRows: the parts of long rows that each block of a grid holds in a ring of chunks (row_held.cuh).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "runtime/families/built_in_family.h"
#include "runtime/families/counts.h"
#include "runtime/families/work_division.h"

namespace hone {

// The parameters of policies that hold rows: the shared memory of a block, and groups of its warps that take rows in
// turn.
inline Parameter ring_parameter() { return ordinal("ring_kib", {216, 88, 32}).only_if("combine", {Combine::held}); }
inline Parameter row_groups_parameter() {
  return ordinal("row_groups", {1, 2, 3}).only_if("combine", {Combine::held}).otherwise(1);
}

/// How a row is divided among blocks.
struct HeldParts {
  static constexpr std::int64_t kPackBytes = 16, kLinePacks = 8;
  static constexpr std::int64_t kTreeChunkPacks = 128;  ///< kChunkBytes of canonical_tree.cuh
  static constexpr std::int64_t kChunkPacks = 1024;     ///< what a slot of a ring holds, at most

  std::int64_t packs;                    ///< of the part of each block
  std::int64_t unit_packs;               ///< of which chunks are made
  std::int64_t states;                   ///< of a row, which its blocks publish
  std::int64_t pieces = 0;               ///< of a row: what else they publish, of runs that two parts share
  bool one_warp_combines = false;        ///< the States of a row
  std::int64_t state_rows = 28;          ///< whose States a workspace has (kRing + kAgainRows of held_states.cuh)
  int run_levels = 0;                    ///< of a tree: each State is that of 2^run_levels of its chunks
  std::int64_t bytes_of_tree_chunk = 0;  ///< in shared memory, behind the ring
  std::int64_t padding_packs = 0;        ///< of a slot of a ring (kPaddingPacks of held_order.cuh)

  /// Whole lines. A row may begin within one.
  static HeldParts of_lines(std::int64_t row_packs, std::int64_t blocks);

  /// Whole runs of chunks of the rows' canonical tree, which share packs unless rows are aligned. If one warp combines
  /// the States of a row, two neighbouring parts of aligned rows may share a run: runs are longer then, and so fewer.
  static HeldParts of_tree(std::int64_t row_packs, std::int64_t blocks, std::int64_t state_bytes,
                           std::int64_t sum_bytes, bool is_aligned, bool one_warp_combines);

  bool is_of_tree() const { return bytes_of_tree_chunk > 0; }

  /// Packs of a chunk of a part. Where a ring has room for all chunks of a part, with their padding, it has slots for
  /// them.
  std::int64_t slot_packs(std::int64_t ring_bytes) const;

  std::int64_t slot_bytes(std::int64_t chunk_packs) const { return (chunk_packs + padding_packs) * kPackBytes; }
  std::int64_t whole_units(std::int64_t of_packs) const { return divide_up(of_packs, unit_packs) * unit_packs; }

  /// Rows of which a block keeps the sums of the tree's chunks, at most: as many as a ring of so many packs has parts,
  /// rounded up to a power of two. There are two at least, since chunks of the next row may pass while a row waits for
  /// what other blocks find.
  std::int64_t kept_rows(std::int64_t ring_packs) const {
    const std::int64_t parts = std::max<std::int64_t>(2, divide_up(ring_packs, packs));
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(parts)));
  }

  /// The shared memory of a block that these sums need.
  std::int64_t bytes_behind_ring(std::int64_t ring_bytes) const {
    return kept_rows(ring_bytes / kPackBytes) * (packs / kTreeChunkPacks) * bytes_of_tree_chunk;
  }

 private:
  void take_whole_runs(std::int64_t row_chunks, std::int64_t blocks, std::int64_t most_states);
  void share_runs(std::int64_t row_chunks, std::int64_t blocks, std::int64_t most_states);

  /// Packs of a chunk, at most, where some pass: of whole units, so that the ring has room for three. Three packs of each
  /// thread of a group of 12 warps, which a block of 1024 threads has, or eight chunks of a tree: softmax of 4 rows of
  /// 2^24 f16 takes 89.6 µs so, 91.7 by four packs of a thread and 91.3 by eight chunks; reproducible softmax takes 98.9,
  /// 98.2 and 97.7 (H200, CUDA 13.0, 2026-11-29, one launch after the other).
  std::int64_t most_passing_packs(std::int64_t ring_bytes) const;
};

struct HeldRows {
  /// Rows that a ring holds at once, and chunks of a ring (kMostRows and kMostSlots of held_parts.cuh).
  static constexpr std::int64_t kMostRows = 14, kMostSlots = 64;

  /// Rows of a call, at most, where some may have to be summed again (kMostAgain of held_parts.cuh).
  static constexpr std::int64_t kMostAgain = 16384;

  static constexpr std::int64_t kPackBytes = HeldParts::kPackBytes, kChunkPacks = HeldParts::kChunkPacks;

  /// Slots that chunks pass through; one more for the smaller chunks of rows of trees.
  static constexpr std::int64_t kPassingSlots = 3;

  /// Copies in flight, at most, of chunks that are held where the first ones of a part pass.
  static constexpr std::int64_t kMostHeldInFlight = 5;

  /// The first chunks of a part pass (HeldRoles) where a row has at most the bytes of so many rings, and the last ones
  /// where it is longer: L2 should have what passes of two rows. Softmax of 4 rows of 2^24 f16 takes 95 µs with the
  /// first, and 100 with the last; of f32 195, and 186; of 2 of 30000001 f16 89, and 86 (H200, CUDA 13.0, 2026-11-29).
  static constexpr std::int64_t kMostRingsPassFirst = 192;

  /// One warp combines the States of a row of a tree, if blocks take rows of at least so many rings one at a time: most
  /// SMs have no room for their parts. Then threads have more registers, 72 and not 64: reproducible softmax of 4 rows
  /// of 2^24 f16 takes 91.8 µs so, and 94.2 with four warps, of 4 of 2^24 + 1 95.5 and 100.0. Shorter rows wait for
  /// States more often: 16 rows of 3000000 f32 take 136 µs so, and 122 with four warps (H200, CUDA 13.0, 2026-11-30).
  static constexpr std::int64_t kLeastRingsOneCombines = 128;
  static constexpr bool one_warp_combines(std::int64_t row_packs, std::int64_t ring_kib, std::int32_t row_groups) {
    return row_groups == 1 && row_packs * kPackBytes >= kLeastRingsOneCombines * ring_kib * 1024;
  }

  /// Where L2 has room for that, the first chunks of the next row that will be held are fetched to it while blocks wait
  /// for each other: reproducible softmax of 4 rows of 2^24 f16 takes 93.9 µs so, with five chunks 94.2, and 96.4
  /// without (2026-11-30); of f32, 193.8 and 190.9 without (H200, CUDA 13.0, 2026-11-29, one launch after the other).
  static constexpr int kFetchedAhead = 3;

  /// The loads that a block has in flight where no chunks pass.
  static constexpr std::int64_t kInFlightBytes = 50 * 1024;

  /// The static shared memory of a block, at most: mbarriers; what its warps found of each row in the ring; nodes of a
  /// row's States; and a bit for each row that may have to be summed again.
  static constexpr std::int64_t kMostStaticBytes = 9 * 1024;

  /// The ring has room for so much besides the part of a row that waits for other blocks: bytes in flight, and the
  /// chunk that is written.
  static constexpr std::int64_t kLeastAheadBytes = 32 * 1024;

  /// Rows of fewer bytes are held by clusters.
  static constexpr std::int64_t kLeastRowBytes = std::int64_t{3} << 19;

  std::int64_t row_packs;  ///< of the longest row
  std::int64_t blocks;
  std::int64_t ring_kib;
  std::int32_t row_groups;  ///< of warps that take rows in turn
  HeldParts parts = HeldParts::of_lines(row_packs, blocks);

  std::int64_t part_packs = parts.packs;
  std::int64_t ring_bytes = ring_kib * 1024 - parts.bytes_behind_ring(ring_kib * 1024);
  std::int64_t slot_packs = parts.slot_packs(ring_bytes);
  std::int64_t chunks = divide_up(part_packs, slot_packs);  ///< of a part
  std::int64_t slot_bytes = parts.slot_bytes(slot_packs);
  std::int64_t slots = std::min({ring_bytes / slot_bytes, kMostRows * chunks, kMostSlots});

  /// Chunks of a part that are held until they are written; the others pass through slots of their own.
  std::int64_t passing_slots =
      slots < chunks ? std::clamp<std::int64_t>(slots - 1, 0, kPassingSlots + (parts.is_of_tree() ? 1 : 0)) : 0;
  std::int64_t held_slots = slots - passing_slots;
  std::int64_t held_chunks = std::min(held_slots, chunks);

  /// Copies in flight; where the first chunks of a part pass, those of chunks that are held, besides what passes.
  std::int64_t in_flight = std::clamp<std::int64_t>(copies_in_flight(), 1, at_least_one(most_in_flight()));

  /// A block keeps the sums of the tree's chunks of so many rows.
  std::int64_t kept_rows() const { return parts.kept_rows(slots * slot_packs); }

  /// Where chunks pass: with three of them, reproducible softmax of 4 rows of 2^24 f16 takes 91.4 µs, and with four
  /// 91.2; fast softmax 88.1 with three and 86.9 with five (H200, CUDA 13.0, 2026-11-30, one launch after the other).
  std::int64_t copies_in_flight() const {
    if (passing_slots == 0) return kInFlightBytes / slot_bytes;
    return pass_first() && !parts.is_of_tree() ? kMostHeldInFlight : passing_slots;
  }

  /// Copies may land in any order, and a group that waits for one must know that the copy before it in the same slot has
  /// landed: its own earlier chunks have, and what is copied more than in_flight before the last of these. Where a slot
  /// belongs to different groups in turn, that has to be enough.
  std::int64_t most_in_flight() const {
    return row_groups == 1 || slots % (row_groups * chunks) == 0 ? held_slots : slots - (row_groups - 1) * chunks - 1;
  }

  bool are_held_whole() const { return held_chunks == chunks; }

  /// True for all rows of trees of which blocks take one at a time: reproducible softmax of 4 rows of 2^24 f16 takes 106
  /// µs with the first chunks, and 119 with the last; longer rows take as long either way.
  bool pass_first() const { return row_groups == 1 && (parts.is_of_tree() || l2_has_room()); }
  bool l2_has_room() const { return row_packs * kPackBytes <= kMostRingsPassFirst * ring_kib * 1024; }

  bool fit() const { return are_held_whole() ? slots >= row_groups * chunks : row_groups == 1 && passing_slots > 0; }
  bool fit_times(int count) const { return slots >= count * chunks; }

  /// Loads are in flight while blocks wait for each other.
  bool have_room() const {
    return !are_held_whole() || ring_bytes >= part_packs * kPackBytes + kLeastAheadBytes;
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
  void add_to(WorkShape& shape, std::int64_t rows, double reread, std::int32_t block_threads) const {
    constexpr double kHeldLatencies = 28;
    shape.block_threads = launched_threads(block_threads);
    shape.bytes_in_flight_per_block = std::min(kInFlightBytes, ring_kib * 1024);
    shape.pipeline_fill_latencies = kHeldLatencies;
    shape.traffic += reread;
    shape.reread_traffic = reread;
    shape.reread_distance_bytes = row_packs * kPackBytes;
    shape.held_bytes_per_block = ring_kib * 1024;
    shape.held_rows = rows;
  }

  /// The threads of a group of a block (HeldRoles) that has so many at most. As many add up rows as write them. The
  /// four schedulers of an SM have as many warps of a larger group each: reproducible softmax of 4 rows of 2^24 f16
  /// takes 102.1 µs by groups of 12 warps, and 104.0 by 13 (H200, CUDA 13.0, 2026-11-29).
  std::int32_t group_threads(std::int32_t block_threads) const {
    const std::int32_t warps = (block_threads / 32 - other_warps()) / (2 * row_groups);
    return (warps < 8 ? warps : warps / 4 * 4) * 32;
  }
  /// The threads that have a role. With fewer there are more registers for each.
  std::int32_t launched_threads(std::int32_t block_threads) const {
    return 32 * other_warps() + 2 * row_groups * group_threads(block_threads);
  }
  /// The warps that load, publish and combine.
  std::int32_t other_warps() const { return 3 + combining_warps(); }
  std::int32_t combining_warps() const { return parts.one_warp_combines ? 1 : 4; }

  /// Sets what kernels know of the division.
  void set(auto& arguments) const {
    arguments.chunks = static_cast<unsigned>(chunks);
    arguments.lag = static_cast<unsigned>(in_flight);
    arguments.slots = static_cast<unsigned>(held_slots);
    arguments.slot_packs = static_cast<unsigned>(slot_packs);
    arguments.part_packs = static_cast<unsigned>(part_packs);
    arguments.held_chunks = static_cast<unsigned>(held_chunks);
    arguments.passing_slots = static_cast<unsigned>(passing_slots);
  }

  /// Adds the entry of a unit that defines Kernel, with group_threads() threads, for a block of launched_threads().
  void add_to(Unit& unit, std::int32_t loads, std::int32_t block_threads, MinBlocks min_blocks) const;
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
       return 8 * held.slots < held.chunks;
     }},
}};

}  // namespace hone
