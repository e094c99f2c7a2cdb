#include "runtime/device/host/block_runner.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <random>

#include "runtime/device/host/access_trace.h"
#include "runtime/device/host/block_state.h"

namespace hone {
namespace {

/// An arena aligned to its own size. Only pages that are touched take memory.
unsigned char* map_arena() {
  constexpr std::size_t bytes = hone_host::kArenaBytes;
  void* const mapped = mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
  const std::uintptr_t aligned = (begin + bytes - 1) & ~(bytes - 1);
  if (aligned > begin) munmap(mapped, aligned - begin);
  if (aligned + bytes < begin + 2 * bytes) {
    munmap(reinterpret_cast<void*>(aligned + bytes), begin + 2 * bytes - aligned - bytes);
  }
  auto* const arena = reinterpret_cast<unsigned char*>(aligned);
  if (mprotect(arena, bytes, PROT_READ | PROT_WRITE) != 0) {
    munmap(arena, bytes);
    throw std::bad_alloc();
  }
  return arena;
}

void poison_shared_memory(const SharedMemory& shared, unsigned char fill) {
  if (shared.begin == nullptr) return;
  unsigned char* const dynamic = shared.begin + shared.static_bytes;
  sanitizer::unpoison(dynamic, shared.dynamic_reserved_bytes);
  std::memset(shared.begin, fill, shared.static_bytes + shared.dynamic_reserved_bytes);
  sanitizer::poison(dynamic + shared.dynamic_bytes, shared.dynamic_reserved_bytes - shared.dynamic_bytes);
}

bool overran_dynamic_smem(const SharedMemory& shared, unsigned char fill) {
  if (shared.begin == nullptr) return false;
  const unsigned char* const dynamic = shared.begin + shared.static_bytes;
  sanitizer::unpoison(dynamic, shared.dynamic_reserved_bytes);
  const std::size_t bytes = shared.dynamic_reserved_bytes - shared.dynamic_bytes;
  const unsigned char* const unused = dynamic + shared.dynamic_bytes;
  return bytes > 0 && (unused[0] != fill || std::memcmp(unused, unused + 1, bytes - 1) != 0);
}

}  // namespace

BlockRunner::BlockRunner() : state_(std::make_unique<BlockState>()) {}
BlockRunner::~BlockRunner() = default;

BlockFailure BlockRunner::run(const BlockWork& work, const SharedMemory& shared, hone_host::Index3 block) {
  poison_shared_memory(shared, work.smem_fill);
  state_->prepare(work, block);
  if (work.trace)
    work.trace->begin_block(block, shared.begin, shared.static_bytes + shared.dynamic_reserved_bytes);
  const bool has_guard = shared.dynamic_reserved_bytes >= shared.dynamic_bytes + BlockState::kGuardBytes;
  state_->smem_guard = has_guard ? shared.begin + shared.static_bytes + shared.dynamic_bytes : nullptr;
  state_->dynamic_smem_bytes = shared.dynamic_bytes;
  state_->smem_begin = reinterpret_cast<std::uintptr_t>(shared.begin);
  state_->smem_end = state_->smem_begin + shared.static_bytes + shared.dynamic_bytes;
  BlockFailure failure = state_->run_lanes();
  if (work.trace) work.trace->end_block();
  if (overran_dynamic_smem(shared, work.smem_fill) && failure.kind == BlockFailure::Kind::none) {
    failure.kind = BlockFailure::Kind::dynamic_smem_overrun;
    failure.number = shared.dynamic_bytes;
  }
  failure.block = block;
  return failure;
}

BlockState::BlockState() : arena(map_arena()) {
  services = &kHostServices;
  polls = 0;
  BlockView* const self_view = this;
  std::memcpy(arena, &self_view, sizeof(self_view));
  for (std::size_t i = 0; i < kMaxLanes; ++i) lanes[i].index = static_cast<std::uint16_t>(i);
}

BlockState::~BlockState() {
  for (sanitizer::FiberState& fiber : fibers) sanitizer::retire(fiber);
  forget_guarded_stacks(static_cast<int>(guarded.count()));
  munmap(arena, hone_host::kArenaBytes);
}

void BlockState::prepare(const BlockWork& block_work, hone_host::Index3 block_index) {
  work = &block_work;
  count(blocks_begun);
  block = block_index;
  block_extent = work->extent;
  grid_extent = work->grid;
  lane_count = static_cast<int>(block_extent.x * block_extent.y * block_extent.z);
  ended_count = stacks_started = arrived = 0;
  barrier_votes = 0;
  failure = {};
  for (std::size_t w = 0; w * 32 < static_cast<std::size_t>(lane_count); ++w) {
    const int in_warp = std::min(32, lane_count - static_cast<int>(w) * 32);
    warps[w] = {.existing = 0xffffffffu >> (32 - in_warp)};
  }
  std::size_t i = 0;
  for (unsigned z = 0; z < block_extent.z; ++z) {
    for (unsigned y = 0; y < block_extent.y; ++y) {
      for (unsigned x = 0; x < block_extent.x; ++x, ++i) {
        lanes[i].thread = {x, y, z};
        lanes[i].context = nullptr;
        lanes[i].site = {};
        lanes[i].state = Lane::State::fresh;
      }
    }
  }
  copies_land_late = work->copies.kind == HostCopies::Kind::late;
  copies.begin_block(work->copies.seed, block, static_cast<std::size_t>(lane_count));
  order_lanes();
  ready_head = ready_tail = nullptr;
  for (int k = 0; k < lane_count; ++k) push_back(lanes[order[static_cast<std::size_t>(k)]]);
}

void BlockState::order_lanes() {
  const auto count = static_cast<std::size_t>(lane_count);
  for (std::size_t i = 0; i < count; ++i) order[i] = static_cast<std::uint16_t>(i);
  if (work->order.kind == HostOrder::Kind::reverse) std::reverse(order.begin(), order.begin() + lane_count);
  if (work->order.kind == HostOrder::Kind::random) {
    std::seed_seq seed{static_cast<unsigned>(work->order.seed), static_cast<unsigned>(work->order.seed >> 32), block.x,
                       block.y, block.z};
    std::minstd_rand random(seed);
    for (std::size_t i = count - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
  }
  std::array<std::uint8_t, kMaxLanes / 32> filled{};
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t warp = order[k] / 32u;
    warp_order[warp * 32 + filled[warp]++] = order[k];
  }
}

}  // namespace hone
