#include "runtime/families/row_held.h"

#include <fmt/format.h>

namespace hone {
namespace {

/// Bulk copies and mbarriers came with compute capability 9.0. The host device has twins.
bool has_bulk_copies(const DeviceFacts& facts) { return is_host(facts) || facts.compute_capability >= 90; }

constexpr std::int64_t kMostPartPacks = std::int64_t{1} << 28;
constexpr std::int64_t kMostCounted = std::int64_t{1} << 31;
constexpr auto kMostPartialBytes = static_cast<std::int64_t>(kWorkspaceBytes - kWorkspaceHeaderBytes);

}  // namespace

Reason HeldRows::is_valid(const DeviceFacts& facts, std::int64_t rows, std::int64_t state_bytes) const {
  return first_reason(
      {reason_if(!has_bulk_copies(facts), "the device has no bulk copies"),
       check_smem(facts, ring_kib * 1024 + kMostStaticBytes),
       reason_if(!fit(), "the SMs do not hold a row of each group in shared memory"),
       reason_if(part_packs > kMostPartPacks, "a block's part of a row has more packs than 28 bits count"),
       reason_if(rows > kMostCounted / blocks, "rows have more parts than 32 bits count"),
       reason_if(kStateRows * blocks * 2 * state_bytes > kMostPartialBytes,  // words with tags
                 "rows have more partial results than the workspace")});
}

void HeldRows::add_to(Unit& unit, std::int32_t loads, std::int32_t block_threads, std::int32_t row_groups,
                      MinBlocks min_blocks) {
  unit.source += fmt::format(
      "using Held = hone::RowHeld<Kernel, {}, {}, {}>;\n"
      "static_assert(Held::kMostRows == {} && Held::kRing == {} && Held::kMostSlots == {} &&\n"
      "                  Held::kLinePacks == {} && sizeof(Held::Shared) <= {},\n"
      "              \"host and device disagree\");\n",
      block_threads, row_groups, loads, kMostRows, kStateRows, kMostSlots, kLinePacks, kMostStaticBytes);
  unit.entries.push_back(kernel_entry("Held::run", block_threads, min_blocks));
}

}  // namespace hone
