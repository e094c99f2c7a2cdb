// Switching between lanes.
#include <boost/context/detail/fcontext.hpp>

#include <cstring>

#include "runtime/device/host/block_state.h"
#include "runtime/device/host/fault_guard.h"

namespace hone {
namespace {

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

constexpr std::uint64_t kCanary = 0x57ac4b07704e0dULL;

/// Stacks that start at the same offset would share their cache sets: 64 offsets of one line each spread them.
std::size_t colour(std::size_t stack) { return (stack % 64) * 64; }

/// Where a stack's canary lies: above the arena's first word, below the guard page, in a cache set of its own.
std::size_t canary_offset(std::size_t stack) { return 64 + (stack % 62) * 64; }

/// Keeps where the stack that was left can be resumed; `data` points to the place for it, or is null when the stack
/// was left for good.
void keep_context(const transfer_t& from) {
  if (from.data != nullptr) *static_cast<void**>(from.data) = from.fctx;
}

}  // namespace

void BlockState::push_front(Lane& ready) {
  ready.next_ready = ready_head;
  ready_head = &ready;
  if (ready_tail == nullptr) ready_tail = &ready;
}

void BlockState::push_back(Lane& ready) {
  ready.next_ready = nullptr;
  if (ready_tail == nullptr) ready_head = &ready;
  else ready_tail->next_ready = &ready;
  ready_tail = &ready;
}

Lane* BlockState::pop_ready() {
  Lane* const next = ready_head;
  if (next == nullptr) return nullptr;
  ready_head = next->next_ready;
  if (ready_head == nullptr) ready_tail = nullptr;
  return next;
}

void BlockState::make_ready(Lane& waiting) {
  waiting.state = Lane::State::ready;
  push_front(waiting);
}

BlockFailure BlockState::run_lanes() {
  started = std::chrono::steady_clock::now();
  sanitizer::adopt_current_thread(main_fiber);
  // Here and not on first use: whoever creates a fiber is ordered before it, and no lane may be before another.
  for (std::size_t i = 0; i < static_cast<std::size_t>(lane_count); ++i) sanitizer::create(fibers[i]);
  sanitizer::release(&start_token);
  Lane& first = *pop_ready();
  lane = &first;
  start_stack(first);
  sanitizer::before_switch(&main_fiber, fibers[first.index],
                           {stack_bottom(first.stack), hone_host::kStackBytes});
  const transfer_t back = jump_fcontext(first.context, &main_context);
  keep_context(back);
  sanitizer::after_switch(main_fiber);
  if (failure.kind != BlockFailure::Kind::none) {
    sanitizer::unpoison(arena, static_cast<std::size_t>(stacks_started) * hone_host::kStackBytes);
    for (std::size_t i = 0; i < static_cast<std::size_t>(lane_count); ++i) {
      sanitizer::release_for(fibers[i], main_fiber, &end_token);
      sanitizer::destroy(fibers[i]);
    }
  }
  sanitizer::acquire(&end_token);
  if (failure.kind == BlockFailure::Kind::none) report_copies_in_flight();
  return failure;
}

/// Gives a fresh lane a stack of its own.
void BlockState::start_stack(Lane& on) {
  // ThreadSanitizer must see each lane on the same stack in every block, or it takes the reuse for a race.
  const std::size_t stack = sanitizer::kThread ? on.index : static_cast<std::size_t>(stacks_started);
  ++stacks_started;
  unsigned char* const bottom = stack_bottom(stack);
  if (!guarded[stack]) guarded[stack] = guard_stack(bottom);
  std::memcpy(bottom + canary_offset(stack), &kCanary, sizeof(kCanary));
  on.stack = static_cast<std::uint16_t>(stack);
  on.context = make_fcontext(bottom + hone_host::kStackBytes - colour(stack), hone_host::kStackBytes / 2,
                             [](transfer_t from) {
                               keep_context(from);
                               static_cast<BlockState&>(hone_host::this_block()).run_fiber();
                             });
}

/// A stack's life: it runs one lane after the other for as long as fresh ones follow, so that a block whose lanes
/// never meet needs one stack and no switch.
void BlockState::run_fiber() {
  const sanitizer::StackBounds left = sanitizer::after_switch({});
  if (stacks_started == 1) main_stack = left;
  for (;;) {
    sanitizer::acquire(&start_token);
    work->call(work->arguments);
    sanitizer::release(&end_token);
    Lane* const next = end_lane();
    next->stack = self().stack;
    count(turns);
    lane = next;
  }
}

/// Ends the running lane: returns a fresh lane to run on its stack, or never.
Lane* BlockState::end_lane() {
  Lane& ended = self();
  check_smem_guard();
  ended.state = Lane::State::ended;
  ++ended_count;
  warp_of(ended).ended |= 1u << ended.index % 32;
  std::uint64_t canary = 0;
  std::memcpy(&canary, stack_bottom(ended.stack) + canary_offset(ended.stack), sizeof(canary));
  if (canary != kCanary) {
    failure.number = hone_host::kStackBytes;
    fail(BlockFailure::Kind::stack_overflow, {&ended});
  }
  check_nobody_waits_for(ended);
  Lane* const next = pop_ready();
  if (next == nullptr) {
    if (ended_count != lane_count) fail_deadlock();
    leave_to_main();
  }
  if (next->context == nullptr && !sanitizer::kThread) return next;
  if (next->context == nullptr) start_stack(*next);
  count(turns);
  lane = next;
  sanitizer::before_switch(nullptr, fibers[next->index], {stack_bottom(next->stack), hone_host::kStackBytes});
  jump_fcontext(next->context, nullptr);
  __builtin_unreachable();
}

/// The running lane waits: the next ready one runs. Returns when this one has been made ready and is next.
void BlockState::wait_for_others() {
  copies.pass_turn();
  Lane* const next = pop_ready();
  if (next == nullptr) fail_deadlock();
  if (next != lane) switch_to(*next);
}

void BlockState::switch_to(Lane& to) {
  Lane& from = self();
  if (to.context == nullptr) start_stack(to);
  count(turns);
  lane = &to;
  sanitizer::before_switch(&fibers[from.index], fibers[to.index], {stack_bottom(to.stack), hone_host::kStackBytes});
  const transfer_t back = jump_fcontext(to.context, &from.context);
  keep_context(back);
  sanitizer::after_switch(fibers[from.index]);
}

void BlockState::leave_to_main() {
  sanitizer::before_switch(nullptr, main_fiber, main_stack);
  jump_fcontext(main_context, nullptr);
  __builtin_unreachable();
}

void BlockState::fail(BlockFailure::Kind kind, std::initializer_list<const Lane*> reported) {
  failure.kind = kind;
  for (const Lane* at : reported) {
    const char* what = "was last seen at";
    if (at->state == Lane::State::ended)
      what = at->site.file != nullptr ? "has returned, last seen at" : "has returned";
    else if (at->state == Lane::State::at_barrier) what = "waits in __syncthreads() at";
    else if (at->state == Lane::State::at_warp_op) what = "waits in a warp operation at";
    else if (at == lane) what = at->site.file != nullptr ? "is at" : "ran";
    failure.add({at->thread, at->site, what});
  }
  leave_to_main();
}

/// The block has ended: a GPU gives its shared memory to the next.
void BlockState::report_copies_in_flight() {
  failure.number = copies.count();
  if (failure.number == 0) return;
  const LateCopies::InFlight one = copies.any();
  failure.kind = BlockFailure::Kind::copies_in_flight;
  failure.add({lanes[one.lane].thread, one.copy.site, "started one at"});
}

/// Reports one lane for each place that lanes wait at.
void BlockState::fail_deadlock() {
  failure.kind = BlockFailure::Kind::deadlock;
  for (int i = 0; i < lane_count; ++i) {
    const Lane& waiting = lanes[static_cast<std::size_t>(i)];
    if (waiting.state != Lane::State::at_barrier && waiting.state != Lane::State::at_warp_op) continue;
    bool seen = false;
    for (int k = 0; k < failure.lane_count; ++k) {
      const hone_host::Site& known = failure.lanes[static_cast<std::size_t>(k)].site;
      seen = seen || (known.line == waiting.site.line && std::strcmp(known.file, waiting.site.file) == 0);
    }
    if (seen) continue;
    failure.add({waiting.thread, waiting.site,
                 waiting.state == Lane::State::at_barrier ? "waits in __syncthreads() at"
                                                          : "waits in a warp operation at"});
  }
  leave_to_main();
}

}  // namespace hone
