#include "runtime/families/row_held.h"

#include <algorithm>

#include <fmt/format.h>

namespace hone {
namespace {

constexpr std::int64_t kMostPartPacks = std::int64_t{1} << 28;
constexpr std::int64_t kMostCounted = std::int64_t{1} << 31;
constexpr auto kMostPartialBytes = static_cast<std::int64_t>(kWorkspaceBytes - kWorkspaceHeaderBytes);

/// Leaves of the tree of a run, and of a row's States (TreeOfNodes of canonical_held_order.cuh).
constexpr std::int64_t kMostLeaves = std::int64_t{1} << 15;

/// Longer runs save States, but make parts longer, and some blocks have none then. A warp that combines a row takes
/// kStatesAtOnce States at once, and as long as blocks take for 2.5 chunks of the tree: 16 rows of 3000000 f32 take
/// softmax 311 µs with 3036 States and 179 with 396 (H100, CUDA 13.0, 2026-11-27). Where four warps share a row's
/// States, they still count: 16 rows of 4000000 f16 take 97 µs with 264 and 119 with 1980 (H200, the same).
constexpr std::int64_t kStatesAtOnce = 160;
std::int64_t half_chunks_of_row(std::int64_t part_chunks, std::int64_t states) {
  return 2 * part_chunks + 5 * divide_up(states, kStatesAtOnce);
}

/// Parts that share runs are of whole nodes, fewer than a warp has lanes, and publish so many pieces each
/// (canonical_shared_runs.cuh). To wait for these takes as long as for States.
constexpr std::int64_t kNodeChunks = 8, kMostChunksOfSharing = 31 * kNodeChunks, kPieces = 4;

/// The bytes of a State in the workspace: TaggedState of tagged_state.cuh.
std::int64_t tagged_bytes(std::int64_t state_bytes) { return divide_up(2 * state_bytes, 16) * 16; }

}  // namespace

HeldParts HeldParts::of_lines(std::int64_t row_packs, std::int64_t blocks) {
  const std::int64_t lines = divide_up(row_packs + kLinePacks - 1, blocks * kLinePacks);
  return {.packs = lines * kLinePacks, .unit_packs = kLinePacks, .states = blocks};
}

HeldParts HeldParts::of_tree(std::int64_t row_packs, std::int64_t blocks, std::int64_t state_bytes,
                             std::int64_t sum_bytes, bool is_aligned, bool one_warp_combines) {
  HeldParts parts{.packs = 0,
                  .unit_packs = kTreeChunkPacks,
                  .states = 0,
                  .one_warp_combines = one_warp_combines,
                  .bytes_of_tree_chunk = sum_bytes,
                  .padding_packs = is_aligned ? 0 : kLinePacks};
  parts.state_rows += 2;
  const std::int64_t most = std::min(kMostLeaves, kMostPartialBytes / (parts.state_rows * tagged_bytes(state_bytes)));
  parts.take_whole_runs(divide_up(row_packs, kTreeChunkPacks), blocks, most);
  if (is_aligned && one_warp_combines) parts.share_runs(divide_up(row_packs, kTreeChunkPacks), blocks, most);
  return parts;
}

void HeldParts::take_whole_runs(std::int64_t row_chunks, std::int64_t blocks, std::int64_t most_states) {
  const std::int64_t least = divide_up(row_chunks, blocks);
  const auto in_runs = [&](int levels) { return divide_up(least, std::int64_t{1} << levels) << levels; };
  const auto states_of = [&](int levels) { return blocks * (in_runs(levels) >> levels); };
  while (states_of(run_levels) > most_states && std::int64_t{1} << run_levels < least) ++run_levels;
  const auto time = [&](int levels) { return half_chunks_of_row(in_runs(levels), states_of(levels)); };
  for (int levels = run_levels + 1; std::int64_t{1} << levels < 2 * least; ++levels)
    if (time(levels) <= time(run_levels)) run_levels = levels;
  packs = in_runs(run_levels) * kTreeChunkPacks;
  states = states_of(run_levels);
}

void HeldParts::share_runs(std::int64_t row_chunks, std::int64_t blocks, std::int64_t most_states) {
  const std::int64_t most = std::min(kMostChunksOfSharing, packs / kTreeChunkPacks);
  const std::int64_t of_whole_runs = half_chunks_of_row(packs / kTreeChunkPacks, states);
  const std::int64_t of_pieces = half_chunks_of_row(0, 1);
  for (std::int64_t chunks = divide_up(divide_up(row_chunks, blocks), kNodeChunks) * kNodeChunks; chunks <= most;
       chunks += kNodeChunks) {
    const int levels = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(chunks))) - 1;
    const std::int64_t runs = blocks * chunks >> levels;
    if (chunks % (std::int64_t{1} << levels) == 0 || runs << levels < row_chunks) continue;
    if (runs + blocks * kPieces > most_states || half_chunks_of_row(chunks, runs) + of_pieces > of_whole_runs) continue;
    packs = chunks * kTreeChunkPacks;
    run_levels = levels;
    states = runs;
    pieces = blocks * kPieces;
    return;
  }
}

std::int64_t HeldParts::slot_packs(std::int64_t ring_bytes) const {
  const auto slot_of = [&](std::int64_t chunks) { return whole_units(divide_up(packs, chunks)); };
  for (std::int64_t chunks = divide_up(packs, kChunkPacks); packs * kPackBytes <= ring_bytes; ++chunks) {
    const std::int64_t slot = slot_of(chunks);
    if (divide_up(packs, slot) * slot_bytes(slot) <= ring_bytes) return slot;
    if (slot == unit_packs) break;
  }
  return slot_of(divide_up(packs, most_passing_packs(ring_bytes)));
}

std::int64_t HeldParts::most_passing_packs(std::int64_t ring_bytes) const {
  const std::int64_t third = (ring_bytes / (3 * kPackBytes) - padding_packs) / unit_packs * unit_packs;
  return std::clamp(third, unit_packs, (is_of_tree() ? 8 : 9) * kTreeChunkPacks);
}

Reason HeldRows::is_valid(const DeviceFacts& facts, std::int64_t rows, std::int64_t state_bytes) const {
  return first_reason(
      {reason_if(!has_bulk_copies(facts), "the device has no bulk copies"),
       check_smem(facts, ring_kib * 1024 + kMostStaticBytes),
       reason_if(!fit(), "the SMs do not hold a row of each group in shared memory"),
       reason_if(part_packs > kMostPartPacks, "a block's part of a row has more packs than 28 bits count"),
       reason_if(rows > kMostCounted / blocks, "rows have more parts than 32 bits count"),
       reason_if(parts.is_of_tree() && rows > kMostAgain, "there are more rows than a block notes for a second sum"),
       reason_if(std::int64_t{1} << parts.run_levels > kMostLeaves || parts.states > kMostLeaves,
                 "rows have more chunks than their trees take"),
       reason_if(parts.state_rows * (parts.states + parts.pieces) * tagged_bytes(state_bytes) > kMostPartialBytes,
                 "rows have more partial results than the workspace")});
}

void HeldRows::add_to(Unit& unit, std::int32_t loads, std::int32_t block_threads, MinBlocks min_blocks) const {
  unit.source += fmt::format(
      "using Held = hone::RowHeld<Kernel, hone::HeldRoles<{}, {}, {}, {}, {}>, {}>;\n"
      "static_assert(Held::kMostRows == {} && Held::kRing + Held::kAgainRows == {} && Held::kMostSlots == {} &&\n"
      "                  Held::kLinePacks == {} && (Held::kAgainRows == 0 || Held::kMostAgain == {}) &&\n"
      "                  Held::Order::kPaddingPacks == {} && sizeof(Held::Shared) <= {} &&\n"
      "                  Held::Roles::kThreads == {},\n"
      "              \"host and device disagree\");\n",
      block_threads, combining_warps(), row_groups, pass_first(), pass_first() && l2_has_room() ? kFetchedAhead : 0,
      loads, kMostRows, parts.state_rows, kMostSlots, HeldParts::kLinePacks, kMostAgain, parts.padding_packs,
      kMostStaticBytes, launched_threads(block_threads));
  if (parts.is_of_tree())
    unit.source += fmt::format(
        "using SharedRuns = Held::Order::SharedRuns;\n"
        "static_assert(SharedRuns::kNodeChunks == {} && SharedRuns::kPieces == {}, \"host and device disagree\");\n",
        kNodeChunks, kPieces);
  unit.entries.push_back(kernel_entry("Held::run", launched_threads(block_threads), min_blocks));
}

}  // namespace hone
