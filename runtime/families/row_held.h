// HeldRows: the parts of long rows that each block of a grid holds in a ring of chunks (row_held.cuh).
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/families/built_in_family.h"
#include "runtime/families/counts.h"
#include "runtime/families/work_division.h"

namespace hone {

struct HeldRows {
  /// Rows that a ring holds at once, their States in the workspace, and chunks of a ring (kMostRows, kRing and
  /// kMostSlots of row_held.cuh).
  static constexpr std::int64_t kMostRows = 14, kStateRows = 28, kMostSlots = 64;

  static constexpr std::int64_t kPackBytes = 16, kLinePacks = 8;

  /// Packs of a chunk, about: 16 KiB.
  static constexpr std::int64_t kChunkPacks = 1024;

  /// The loads that a block has in flight.
  static constexpr std::int64_t kInFlightBytes = 50 * 1024;

  /// The static shared memory of a block, at most: mbarriers, and the States of its warps and rows.
  static constexpr std::int64_t kMostStaticBytes = 6 * 1024;

  /// The ring has room for so much besides the part of a row that waits for other blocks: bytes in flight, and the
  /// chunk that is written.
  static constexpr std::int64_t kLeastAheadBytes = 32 * 1024;

  std::int64_t row_packs;  ///< of the longest row
  std::int64_t blocks;
  std::int64_t ring_kib;

  /// A row may begin within a line, and parts are whole lines.
  std::int64_t part_packs = whole_lines(divide_up(row_packs + kLinePacks - 1, blocks));
  std::int64_t chunks = divide_up(part_packs, kChunkPacks);  ///< of a part
  std::int64_t slot_packs = whole_lines(divide_up(part_packs, chunks));
  std::int64_t slots = std::min({ring_kib * 1024 / (slot_packs * kPackBytes), kMostRows * chunks, kMostSlots});
  std::int64_t in_flight = std::clamp<std::int64_t>(kInFlightBytes / (slot_packs * kPackBytes), 1, at_least_one(slots));

  static std::int64_t whole_lines(std::int64_t packs) { return divide_up(packs, kLinePacks) * kLinePacks; }

  bool fit() const { return slots >= chunks; }

  /// Loads are in flight while blocks wait for each other.
  bool fit_with_room() const { return ring_kib * 1024 >= part_packs * kPackBytes + kLeastAheadBytes; }

  Reason is_valid(const DeviceFacts& facts, std::int64_t rows, std::int64_t state_bytes) const;

  /// The threads of each of the two groups of a block (HeldRoles): half of its warps, but for six.
  static constexpr std::int32_t group_threads(std::int32_t block_threads) { return (block_threads / 32 - 6) / 2 * 32; }

  /// Adds the entry of a unit that defines Kernel, with group_threads() threads.
  static void add_to(Unit& unit, std::int32_t loads, std::int32_t block_threads, MinBlocks min_blocks);
};

}  // namespace hone
