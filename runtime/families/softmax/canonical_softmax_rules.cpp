// The policies of reproducible softmax that are not worth trying, and why.

#include <array>
#include <cstdint>

#include "runtime/families/softmax/canonical_softmax.h"

namespace hone {
namespace {

constexpr std::int64_t kMostPacksOfBlock = 4096;      ///< in registers
constexpr std::int64_t kMostElementsOfLane = 64;      ///< of a row, which are kept as accumulators
constexpr std::int64_t kMostRowsAtOnce = 4, kMostRowsOfManyLanes = 2;
constexpr int kManyLanes = 8;
constexpr std::int64_t kFewInFlight = 48 * 1024, kEnoughInFlight = 64 * 1024;  ///< bytes of an SM
constexpr std::int64_t kMostChunksOfWarp = 4;         ///< of a row in shared memory
constexpr std::int64_t kLeastRingBytes = 32 * 1024;   ///< of a row
constexpr int kLeastSmemKib = 48;                     ///< that a policy names
constexpr int kMiddleSmemKib = 112;                   ///< what a policy may name besides that and the most
constexpr std::int64_t kMostHeldBytes = 32 * 1024;    ///< some block holds a row in the middle of such a class
constexpr std::int64_t kLeastBytesPerBlock = 8192;    ///< of a row that several blocks share
constexpr std::int64_t kLeastSpansBytes = 64 * 1024;  ///< of a row that is worth two launches

struct View : PolicyView<CanonicalSoftmax> {
  using PolicyView::PolicyView;

  std::int64_t row_bytes = at_least_one(columns) * traits.in_bytes;
  std::int64_t longest = at_least_one(last_of(problem, 1));  ///< row of the class

  bool is_of_lanes() const { return scope == Scope::warp && !is_in_shared; }
  std::int64_t bytes_in_flight_of_sm() const {
    const std::int64_t of_lane = rows_at_once() * whole_packs * pack * traits.in_bytes;
    return of_lane * threads_of_sm(bounds_of_held(held_elements()));
  }
  bool is_of_blocks_in_shared() const { return scope != Scope::warp && is_in_shared && !is_ring; }
  /// True if blocks of twice the threads have as many registers for each.
  bool may_be_larger() const {
    return block_threads < 1024 && 2 * block_threads * packs_per_thread <= kMostPacksOfBlock &&
           (chunks_at_once == 1 || block_threads < 256);
  }
  HeldRows held_rows_of_all_sms() const { return held_rows(columns, facts.sm_count); }
};

constexpr auto kRules = joined(kHeldRules<View>, std::array<PruneRule<View>, 29>{{
    {"few warps of a block that holds rows take long for each", "as with fast numerics (softmax_family.cpp)",
     [](const View& v) { return v.is_held() && v.block_threads < 1024; }},
    {"four warps, one of three groups, share eight chunks of the tree evenly; where a block has more than three chunks of "
     "a row, a larger group does, too",
     "64 rows of 2^20 f16 take 112.7 µs by three groups, 122.5 by two, 125.8 by one, 16 of 3000000 f16 89.3, 96.1 and "
     "89.3, 64 of 2^20 f32 211.4, 231.6 and 210.3, 16 of 3000000 f32, six chunks, 171.0, 184.5 and 169.5 (H100); 96.4, "
     "106.2 and 123.9, 79.2, 83.2 and 83.1, 167.3, 189.0 and 176.0, and 141.8, 150.0 and 140.3 (H200, CUDA 13.0, "
     "2026-11-27)",
     [](const View& v) {
       if (!v.is_held()) return false;
       const HeldRows held = v.held_rows_of_all_sms();
       return v.row_groups != (held.chunks <= 3 && held.fit_times(3) ? 3 : 1);
     }},
    {"a cluster holds so short a row, and its blocks wait for each other only", kNotMeasured,
     [](const View& v) { return v.is_held() && v.row_bytes < HeldRows::kLeastRowBytes; }},
    kNoLaunchBounds<View, MinBlocks::unset>,
    {"launch bounds were not tried here", kNotMeasured,
     [](const View& v) {
       return !v.is_held() &&
              (v.min_blocks == MinBlocks::one ||
               (v.min_blocks != MinBlocks::unset && (!v.is_in_shared || v.is_ring || v.has_tiles)));
     }},
    {"registers hold elements of more than 16 bits as fast",
     "128 rows of 250001 f32 took rings 107 µs, in which a warp had several chunks, 256 of them clusters with registers "
     "188 (H100, CUDA 13.0, 2026-11-28)",
     [](const View& v) { return v.is_ring && v.traits.in_bytes > 2; }},
    {"registers hold so short a row as fast",
     "8192 rows of 8192 f16 took such rings of a block 107 µs, blocks with registers 94, 4096 of 5001 40 and 32 (H100, "
     "CUDA 13.0, 2026-11-28)",
     [](const View& v) { return v.is_ring && v.row_bytes < kLeastRingBytes; }},
    {"smaller blocks or clusters have a warp for each chunk", kNotMeasured,
     [](const View& v) {
       const std::int64_t warps = v.row_warps() * v.cluster_blocks;
       return v.is_ring && v.cluster_blocks * v.block_threads > 128 && warps >= 2 * divide_up(v.longest, v.chunk);
     }},
    {"less shared memory has the slots", kNotMeasured,
     [](const View& v) {
       return v.is_ring && v.smem_kib > kLeastSmemKib &&
              v.ring_bytes(v.longest) <= (v.smem_kib > kMiddleSmemKib ? kMiddleSmemKib : kLeastSmemKib) * 1024;
     }},
    {"groups of lanes need no blocks of more than 256 threads", kNotMeasured,
     [](const View& v) { return (v.is_of_lanes() || v.has_tiles) && v.block_threads > 256; }},
    {"a row has fewer elements than lanes", kNotMeasured,
     [](const View& v) { return v.has_tiles && v.threads_per_row > v.columns; }},
    {"a lane holds more elements than its registers", kNotMeasured,
     [](const View& v) { return v.is_of_lanes() && v.packs_per_thread * v.pack > kMostElementsOfLane; }},
    {"two rows at once are enough for groups of many lanes", "142.5 µs by four, as in the next line",
     [](const View& v) {
       return v.is_of_lanes() && v.threads_per_row >= kManyLanes && v.rows_at_once() > kMostRowsOfManyLanes;
     }},
    {"one row at a time has bytes enough in flight",
     "2^20 rows of 64 f32 take 8 lanes 128 µs one row at a time, 131.5 two, and 4 lanes 131.2 and 133.1 (H200, CUDA "
     "13.0, 2026-11-30)",
     [](const View& v) {
       return v.is_of_lanes() && v.rows_at_once() > 1 && v.bytes_in_flight_of_sm() > kEnoughInFlight;
     }},
    {"one row at a time has few bytes in flight",
     "2^20 rows of 64 f16 take 8 lanes of a pack 82.2 µs one row at a time, 73.2 two (H200, CUDA 13.0, 2026-11-30)",
     [](const View& v) {
       return v.is_of_lanes() && v.row_packs > v.packs_per_thread && v.bytes_in_flight_of_sm() < kFewInFlight;
     }},
    {"lanes hold more than twice a row", kNotMeasured,
     [](const View& v) { return v.is_of_lanes() && v.of_lanes > v.pack && v.of_lanes >= 2 * v.longest; }},
    {"so many rows at once are more than the registers hold", kNotMeasured,
     [](const View& v) { return v.is_of_lanes() && v.rows_at_once() > kMostRowsAtOnce; }},
    {"the packs of a block are more than its registers hold", kNotMeasured,
     [](const View& v) {
       return v.scope != Scope::warp && !v.is_held() && v.block_threads * v.packs_per_thread > kMostPacksOfBlock;
     }},
    {"a block takes more than twice a row at once", kNotMeasured,
     [](const View& v) {
       return v.scope != Scope::warp && !v.is_held() && v.cluster_blocks == 1 && v.tile >= 2 * v.longest &&
              (v.block_threads > 128 || v.chunks_at_once > 1);
     }},
    {"less shared memory would do", "the same row is held",
     [](const View& v) {
       return v.is_of_blocks_in_shared() && v.smem_kib > kLeastSmemKib &&
              v.smem_bytes(v.longest) <= v.smem_kib * 512;
     }},
    {"rows of a chunk at most want fewer lanes than a warp", kNotMeasured,
     [](const View& v) {
       return v.scope == Scope::warp && v.is_in_shared && !v.has_tiles && 2 * v.longest <= v.chunk;
     }},
    {"so long rows are for more than a warp", kNotMeasured,
     [](const View& v) { return v.scope == Scope::warp && v.is_in_shared && v.longest > kMostChunksOfWarp * v.chunk; }},
    {"larger blocks hold the row", kNotMeasured,
     [](const View& v) { return v.scope == Scope::block && !v.is_on_chip && v.row_bytes <= kMostHeldBytes; }},
    {"registers do not hold a row, or the longest one, though larger blocks may: warps without a part are not launched",
     "10000 rows of 10000 f16 took a winner of rows of 8192 144 µs, read twice, and one of their own 109; 8192 of 8192 "
     "take blocks of up to 256 and 512 threads 70.3 µs (H200, CUDA 13.0, 2026-11-29)",
     [](const View& v) {
       if (!v.is_on_chip || v.scope == Scope::warp || v.is_in_shared) return false;
       return (v.may_be_larger() ? v.longest : v.columns) > v.tile * v.cluster_blocks;
     }},
    {"smaller clusters hold the row", kNotMeasured,
     [](const View& v) {
       return v.scope == Scope::cluster && !v.is_in_shared && v.tile * v.cluster_blocks >= 2 * v.longest;
     }},
    {"a row is too short for so many blocks", kNotMeasured,
     [](const View& v) {
       return v.scope == Scope::cluster && v.row_bytes < v.cluster_blocks * kLeastBytesPerBlock;
     }},
    {"a row is too short to be worth two launches", kNotMeasured,
     [](const View& v) { return v.cuts_rows() && v.row_bytes < kLeastSpansBytes; }},
    {"there are rows enough for all blocks", kNotMeasured,
     [](const View& v) { return v.cuts_rows() && v.rows > 4 * v.facts.sm_count; }},
    {"a block for each row leaves most SMs idle", "0.04 of the fast mode, 4 rows of 2^24 f32 (H100, 2026-11-25)",
     [](const View& v) {
       return v.scope == Scope::block && !v.is_on_chip && v.row_bytes >= kLeastSpansBytes &&
              4 * v.rows < v.facts.sm_count;
     }},
}});

}  // namespace

Reason CanonicalSoftmax::prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) {
  return pruned_by(kRules, View(problem_class, policy, facts));
}

}  // namespace hone
