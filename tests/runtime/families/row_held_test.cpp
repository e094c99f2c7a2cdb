// HeldRows: rows of any length are divided so that what a block holds fits its shared memory.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>

#include <fmt/format.h>

#include "runtime/families/row_held.h"

namespace hone {
namespace {

constexpr std::int64_t kTreeChunkPacks = HeldParts::kTreeChunkPacks;

/// Why a division would not work, or empty.
std::string fault_of(const HeldRows& held) {
  const std::int64_t chunks = divide_up(held.row_packs, kTreeChunkPacks), part = held.part_packs / kTreeChunkPacks;
  const std::int64_t run = std::int64_t{1} << held.parts.run_levels;
  if (held.parts.is_of_tree() && held.parts.states * run < chunks) return "States are not of all of a row";
  if (held.parts.is_of_tree() && held.parts.states != held.blocks * part / run)
    return "States are not those of the parts";
  if ((held.parts.pieces > 0) != (held.parts.is_of_tree() && part % run != 0)) return "pieces are of shared runs";
  if (held.parts.pieces > 0 && (held.row_groups > 1 || part % 8 != 0 || part >= 256 || part < run))
    return "runs that are shared are of whole nodes, which a warp has, and of two parts";
  const std::int64_t workspace = static_cast<std::int64_t>(kWorkspaceBytes - kWorkspaceHeaderBytes);
  if (held.parts.pieces > 0 &&
      held.parts.state_rows * (held.parts.states + held.parts.pieces) * 4 * held.parts.bytes_of_tree_chunk > workspace)
    return "pieces are more than the workspace";
  const std::int64_t sums = held.kept_rows() * (held.part_packs / kTreeChunkPacks) * held.parts.bytes_of_tree_chunk;
  if (held.part_packs * held.blocks < held.row_packs) return "parts do not have all of a row";
  if (held.chunks * held.slot_packs < held.part_packs) return "chunks do not have all of a part";
  if ((held.chunks - 1) * held.slot_packs >= held.part_packs) return "the last chunk of a part is empty";
  if ((held.held_slots + held.passing_slots) * held.slot_bytes + sums > held.ring_kib * 1024)
    return "slots and sums are more than the shared memory";
  if (held.in_flight < 1 || held.in_flight > held.held_slots) return "copies in flight";
  for (std::int64_t chunk = held.slots; held.row_groups > 1 && chunk < 3 * held.slots * held.row_groups; ++chunk) {
    const std::int64_t before = chunk - held.slots, row = chunk / held.chunks;
    const bool is_own = (row - before / held.chunks) % held.row_groups == 0;
    const std::int64_t landed = chunk % held.chunks > 0 ? chunk - 1 : (row - held.row_groups + 1) * held.chunks - 1;
    if (!is_own && before > landed - held.in_flight)
      return "a group may wait for a chunk whose slot waits for another group's";
  }
  if (!held.are_held_whole() && held.passing_slots < 1) return "nothing passes";
  if (held.parts.is_of_tree() && held.kept_rows() * held.chunks < held.held_slots)
    return "sums are of fewer rows than the ring has";
  if (held.parts.is_of_tree() && !held.are_held_whole() && held.kept_rows() < 2)
    return "sums of a row take the place of those of the row before";
  if (held.chunks * held.slot_bytes <= held.ring_bytes && held.chunks <= HeldRows::kMostSlots &&
      !held.are_held_whole())
    return "chunks that the ring has room for are not held";
  if (held.parts.padding_packs == 0 && held.part_packs * HeldRows::kPackBytes <= held.ring_bytes &&
      held.chunks <= HeldRows::kMostSlots && !held.are_held_whole())
    return "a part that the ring has room for is not held whole";
  return {};
}

TEST(RowHeld, EveryDivisionThatFitsWorks) {
  std::mt19937_64 random(1);
  const auto below = [&](std::uint64_t bound) { return static_cast<std::int64_t>(random() % bound); };
  int fitting = 0, sharing = 0;
  for (int turn = 0; turn < 300000; ++turn) {
    const std::int64_t row_packs = 1 + below(std::uint64_t{1} << (4 + below(30)));
    const std::int64_t blocks = 1 + below(turn % 2 ? 200 : 8);
    const std::int64_t ring_kib = std::array{216, 88, 32}[static_cast<std::size_t>(below(3))];
    const std::int64_t sum_bytes = std::array{0, 4, 8}[static_cast<std::size_t>(below(3))];
    const auto row_groups = static_cast<std::int32_t>(1 + below(2));
    const HeldParts parts = sum_bytes == 0 ? HeldParts::of_lines(row_packs, blocks)
                                           : HeldParts::of_tree(row_packs, blocks, 2 * sum_bytes, sum_bytes,
                                                                turn % 3 == 0, turn % 4 != 0 && row_groups == 1);
    const HeldRows held{row_packs, blocks, ring_kib, row_groups, parts};
    if (!held.fit()) continue;
    ++fitting;
    sharing += parts.pieces > 0 ? 1 : 0;
    ASSERT_EQ(fault_of(held), "") << fmt::format("{} packs, {} blocks, {} KiB, sums of {} bytes", row_packs, blocks,
                                                 ring_kib, sum_bytes);
  }
  EXPECT_GT(fitting, 100000);
  EXPECT_GT(sharing, 1000);
}

TEST(RowHeld, GroupsFitTheBlockAndLargeOnesItsSchedulers) {
  for (std::int32_t block_threads = 512; block_threads <= 1024; block_threads += 32) {
    for (std::int32_t groups = 1; groups <= 3; ++groups) {
      const bool one_combines = groups == 1 && block_threads % 64 == 0;
      const HeldRows held{1 << 20, 132, 216, groups, HeldParts::of_tree(1 << 20, 132, 8, 4, true, one_combines)};
      const std::int32_t threads = held.group_threads(block_threads);
      EXPECT_GT(threads, 0);
      EXPECT_EQ(held.launched_threads(block_threads), 32 * (one_combines ? 4 : 7) + 2 * groups * threads);
      EXPECT_LE(held.launched_threads(block_threads), block_threads);
      EXPECT_TRUE(threads < 8 * 32 || threads % (4 * 32) == 0) << block_threads << " threads, " << groups << " groups";
    }
  }
}

/// Which chunks pass is a part of the kernel, so it must not depend on how many blocks there are.
TEST(RowHeld, OneGroupOfEachKindLetsTheFirstChunksPass) {
  constexpr std::int64_t kPacks = std::int64_t{1} << 21;
  EXPECT_TRUE((HeldRows{kPacks, 1, 216, 1}.pass_first()));
  EXPECT_TRUE((HeldRows{kPacks, 132, 216, 1}.pass_first()));
  EXPECT_FALSE((HeldRows{kPacks, 132, 216, 2}.pass_first()));
  EXPECT_FALSE((HeldRows{2 * kPacks, 132, 216, 1}.pass_first()));  // L2 has no room for so much
  EXPECT_TRUE((HeldRows{2 * kPacks, 132, 216, 1, HeldParts::of_tree(2 * kPacks, 132, 8, 4, true, true)}.pass_first()));
}

}  // namespace
}  // namespace hone
