// BlockState: BlockRunner's insides: lanes, warps, the ready list and the switching between stacks.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <cstdint>
#include <initializer_list>

#include "runtime/device/host/block_runner.h"
#include "runtime/device/host/fiber_annotations.h"
#include "runtime/device/host/late_copies.h"

namespace hone {

/// One CUDA thread.
struct Lane : hone_host::LaneView {
  enum class State : std::uint8_t { fresh, ready, at_barrier, at_warp_op, ended };

  void* context = nullptr;              ///< where to resume; null: not started
  hone_host::WarpCall* call = nullptr;  ///< while at_warp_op
  hone_host::Site site{};               ///< of its last meeting
  Lane* next_ready = nullptr;
  std::uint16_t index = 0;
  std::uint16_t stack = 0;
  State state = State::fresh;
};

struct Warp {
  unsigned existing = 0;  ///< lanes that the block has
  unsigned ended = 0;
  unsigned waiting = 0;   ///< lanes at a warp operation
  bool uniform = true;    ///< all waiting lanes are at the same operation with the same mask
};

struct BlockState : hone_host::BlockView {
  BlockState();
  ~BlockState();
  BlockState(const BlockState&) = delete;
  BlockState& operator=(const BlockState&) = delete;

  // --- the block ---
  void prepare(const BlockWork& block_work, hone_host::Index3 block_index);
  void order_lanes();
  BlockFailure run_lanes();

  // --- switching (block_switch.cpp) ---
  void push_front(Lane& ready);
  void push_back(Lane& ready);
  Lane* pop_ready();
  void make_ready(Lane& waiting);
  void wait_for_others();
  void switch_to(Lane& to);
  [[noreturn]] void leave_to_main();
  void start_stack(Lane& on);
  void run_fiber();
  Lane* end_lane();

  // --- meetings (block_meetings.cpp) ---
  unsigned barrier(hone_host::BarrierOp op, bool predicate, hone_host::Site site);
  void warp_op(hone_host::WarpCall& call);
  void check_mask(Lane& self, const hone_host::WarpCall& call);
  void check_partners(Lane& self, const Warp& warp, const hone_host::WarpCall& call);
  unsigned same_call(const Warp& warp, const Lane& self) const;
  void complete_warp_op(Lane& self, Warp& warp);
  void poll(hone_host::Site site);
  void check_nobody_waits_for(const Lane& ended_lane);
  void check_smem_guard();
  void start_copy(const hone_host::AsyncCopy& copy);

  static constexpr std::size_t kGuardBytes = sizeof(std::uint64_t);

  // --- reports ---
  [[noreturn]] void fail(BlockFailure::Kind kind, std::initializer_list<const Lane*> lanes);
  [[noreturn]] void fail_deadlock();
  void report_copies_in_flight();

  Lane& self() { return lanes[static_cast<const Lane*>(lane)->index]; }
  Warp& warp_of(const Lane& of) { return warps[of.index / 32u]; }
  unsigned char* stack_bottom(std::size_t stack) const { return arena + stack * hone_host::kStackBytes; }

  static constexpr std::size_t kMaxLanes = hone_host::kMaxLanes;

  unsigned char* arena = nullptr;
  const BlockWork* work = nullptr;
  const unsigned char* smem_guard = nullptr;  ///< the filled bytes after the launch's dynamic shared memory, if any
  std::uint64_t dynamic_smem_bytes = 0;
  std::uintptr_t smem_begin = 0, smem_end = 0;
  LateCopies copies;
  BlockFailure failure;
  void* main_context = nullptr;
  sanitizer::FiberState main_fiber;
  sanitizer::StackBounds main_stack;

  int lane_count = 0;
  int ended_count = 0;
  int stacks_started = 0;
  std::bitset<kMaxLanes> guarded;    ///< stacks that have a guard page
  std::atomic<std::uint64_t> turns{0};  ///< how often another lane has got its turn, in all blocks
  std::atomic<std::uint64_t> blocks_begun{0};
  std::atomic<std::uint64_t> overdue_turn{~std::uint64_t{0}}, overdue_block{~std::uint64_t{0}};  ///< the watchdog's
  Lane* ready_head = nullptr;
  Lane* ready_tail = nullptr;
  std::chrono::steady_clock::time_point started;

  int arrived = 0;  ///< lanes at the barrier
  const Lane* first_arrived = nullptr;
  hone_host::BarrierOp barrier_op{};
  unsigned barrier_votes = 0;
  unsigned barrier_result = 0;
  unsigned barrier_number = 0;

  std::array<Lane, kMaxLanes> lanes;
  std::array<Warp, kMaxLanes / 32> warps;
  std::array<std::uint16_t, kMaxLanes> order;       ///< lane indices in the order in which they run
  std::array<std::uint16_t, kMaxLanes> warp_order;  ///< the same, warp by warp
  std::array<sanitizer::FiberState, kMaxLanes> fibers;

  // Addresses that stand for an ordering under ThreadSanitizer. Two for the barrier: a lane that hurries to the next
  // one must not be ordered before lanes that are still to leave this one. Likewise per warp leader.
  char start_token = 0, end_token = 0, fence_token = 0;
  std::array<char, 2> barrier_tokens{};
  std::array<std::array<char, 2>, kMaxLanes> warp_tokens{};
  std::array<std::uint8_t, kMaxLanes> warp_meetings{};
};

/// Adds 1 to a number that only the calling thread changes.
inline void count(std::atomic<std::uint64_t>& number) {
  number.store(number.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

/// The services that kernels call; they find their block through the stack pointer.
extern const hone_host::Services kHostServices;

/// The hooks of modules that were compiled for a check; lanes alone may call them.
extern const hone_host::Hooks kHostHooks;

}  // namespace hone
