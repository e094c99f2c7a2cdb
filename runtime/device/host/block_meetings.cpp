// Barriers, warp operations and what else kernels ask of their block.
#include <bit>
#include <cstring>
#include <thread>

#include "runtime/device/host/access_trace.h"
#include "runtime/device/host/block_state.h"
#include "runtime/device/host/warp_exchange.h"

namespace hone {
namespace {

using hone_host::BarrierOp;
using hone_host::Site;
using hone_host::WarpCall;
using Kind = BlockFailure::Kind;

bool same_site(const Site& a, const Site& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

bool same_operation(const WarpCall& a, const WarpCall& b) {
  return a.op == b.op && a.mask == b.mask && a.bytes == b.bytes;
}

}  // namespace

unsigned BlockState::barrier(BarrierOp op, bool predicate, Site site) {
  Lane& caller = self();
  caller.site = site;
  check_smem_guard();
  caller.state = Lane::State::at_barrier;
  if (ended_count > 0) {
    const Lane* ended = &caller;
    for (int i = 0; i < lane_count && ended == &caller; ++i) {
      const Lane& other = lanes[static_cast<std::size_t>(i)];
      if (other.state == Lane::State::ended) ended = &other;
    }
    fail(Kind::barrier_without_all, {&caller, ended});
  }
  if (arrived == 0) {
    first_arrived = &caller;
    barrier_op = op;
  } else if (op != barrier_op || !same_site(site, first_arrived->site)) {
    fail(Kind::divergent_barrier, {first_arrived, &caller});
  }
  barrier_votes += predicate;
  void* const token = &barrier_tokens[barrier_number % 2];
  sanitizer::release(token);
  if (++arrived == lane_count) {
    const bool all = barrier_votes == static_cast<unsigned>(lane_count);
    barrier_result = op == BarrierOp::count ? barrier_votes : op == BarrierOp::all ? all : barrier_votes != 0;
    barrier_votes = 0;
    arrived = 0;
    ++barrier_number;
    if (work->trace) work->trace->barrier();
    for (int k = lane_count; k-- > 0;) make_ready(lanes[order[static_cast<std::size_t>(k)]]);
  }
  wait_for_others();
  sanitizer::acquire(token);
  return barrier_result;
}

void BlockState::warp_op(WarpCall& call) {
  Lane& caller = self();
  Warp& warp = warp_of(caller);
  caller.site = call.site;
  check_smem_guard();
  check_mask(caller, call);
  caller.call = &call;
  caller.state = Lane::State::at_warp_op;
  check_partners(caller, warp, call);
  warp.waiting |= 1u << caller.index % 32;

  const auto leader = static_cast<std::size_t>(caller.index / 32 * 32 + std::countr_zero(call.mask));
  void* const token = &warp_tokens[leader][warp_meetings[leader] % 2u];
  // Only __syncwarp() orders memory; CUDA says of shuffles, votes and matches that they imply no memory barrier.
  const bool orders_memory = call.op == hone_host::WarpOp::sync;
  if (orders_memory) sanitizer::release(token);
  if ((same_call(warp, caller) & call.mask) == call.mask) {
    ++warp_meetings[leader];
    complete_warp_op(caller, warp);
  }
  wait_for_others();
  if (orders_memory) sanitizer::acquire(token);
}

void BlockState::check_mask(Lane& caller, const WarpCall& call) {
  const Warp& warp = warp_of(caller);
  failure.mask = call.mask;
  if ((call.mask >> caller.index % 32 & 1) == 0) fail(Kind::mask_omits_caller, {&caller});
  const unsigned absent = call.mask & ~(warp.existing & ~warp.ended);
  if (absent == 0) return;
  failure.other_mask = absent;
  if ((absent & warp.ended) == 0) fail(Kind::mask_names_absent_lanes, {&caller});
  const int ended = std::countr_zero(absent & warp.ended);
  fail(Kind::mask_names_absent_lanes, {&caller, &lanes[caller.index / 32u * 32u + static_cast<unsigned>(ended)]});
}

/// A partner that waits for the caller must do so in the same operation. One that waits elsewhere, without the
/// caller, may still come.
void BlockState::check_partners(Lane& caller, const Warp& warp, const WarpCall& call) {
  Warp& own = warp_of(caller);
  if (warp.waiting == 0) {
    own.uniform = true;
    return;
  }
  const unsigned first_of_warp = caller.index / 32u * 32u;
  const Lane& any = lanes[first_of_warp + static_cast<unsigned>(std::countr_zero(warp.waiting))];
  if (warp.uniform && same_operation(*any.call, call)) return;
  own.uniform = false;
  for (unsigned others = warp.waiting & call.mask; others != 0; others &= others - 1) {
    const Lane& other = lanes[first_of_warp + static_cast<unsigned>(std::countr_zero(others))];
    const bool waits_for_caller = (other.call->mask >> caller.index % 32 & 1) != 0;
    if (!waits_for_caller || same_operation(*other.call, call)) continue;
    failure.other_mask = other.call->mask;
    fail(Kind::warp_op_mismatch, {&caller, &other});
  }
}

/// The waiting lanes that are at the same operation as `of`.
unsigned BlockState::same_call(const Warp& warp, const Lane& of) const {
  if (warp.uniform) return warp.waiting;
  unsigned same = 0;
  for (unsigned others = warp.waiting; others != 0; others &= others - 1) {
    const int bit = std::countr_zero(others);
    const Lane& other = lanes[of.index / 32u * 32u + static_cast<unsigned>(bit)];
    if (same_operation(*other.call, *of.call)) same |= 1u << bit;
  }
  return same;
}

void BlockState::complete_warp_op(Lane& caller, Warp& warp) {
  const unsigned mask = caller.call->mask;
  const unsigned first_of_warp = caller.index / 32u * 32u;
  if (caller.call->op != hone_host::WarpOp::sync) {
    WarpCall* calls[32];
    for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
      const int bit = std::countr_zero(rest);
      calls[bit] = lanes[first_of_warp + static_cast<unsigned>(bit)].call;
    }
    if (const auto error = exchange(calls, mask)) {
      const Lane& at_fault = lanes[first_of_warp + static_cast<unsigned>(error->lane)];
      failure.source_lane = error->source_lane;
      failure.number = static_cast<std::uint64_t>(static_cast<std::int64_t>(at_fault.call->width));
      fail(error->bad_width ? Kind::shuffle_width : Kind::shuffle_from_outside, {&at_fault});
    }
  }
  if (work->trace && caller.call->op == hone_host::WarpOp::sync) work->trace->sync_warp(first_of_warp, mask);
  warp.waiting &= ~mask;
  for (unsigned k = static_cast<unsigned>(std::popcount(warp.existing)); k-- > 0;) {
    Lane& partner = lanes[warp_order[first_of_warp + k]];
    if ((mask >> partner.index % 32 & 1) != 0) make_ready(partner);
  }
}

void BlockState::check_nobody_waits_for(const Lane& ended) {
  if (arrived > 0) fail(Kind::barrier_without_all, {first_arrived, &ended});
  const Warp& warp = warp_of(ended);
  for (unsigned others = warp.waiting; others != 0; others &= others - 1) {
    const Lane& other = lanes[ended.index / 32u * 32u + static_cast<unsigned>(std::countr_zero(others))];
    if ((other.call->mask >> ended.index % 32 & 1) == 0) continue;
    failure.mask = other.call->mask;
    fail(Kind::lane_left_warp_op, {&other, &ended});
  }
}

/// Lanes run undisturbed between meetings: who arrives with the guard overwritten has written it.
void BlockState::check_smem_guard() {
  if (smem_guard == nullptr) return;
  std::uint64_t guard = 0;
  std::memcpy(&guard, smem_guard, kGuardBytes);
  if (guard == work->smem_fill * 0x0101010101010101u) return;
  failure.number = dynamic_smem_bytes;
  fail(Kind::dynamic_smem_overrun, {&self()});
}

void BlockState::poll(Site site) {
  Lane& caller = self();
  caller.site = site;
  const auto elapsed = std::chrono::steady_clock::now() - started;
  if (elapsed > work->deadline) {
    failure.number = static_cast<std::uint64_t>(work->deadline.count());
    fail(Kind::deadline, {&caller});
  }
  if (ready_head == nullptr) {
    copies.pass_round();
    std::this_thread::yield();  // the lane waits for another block, whose thread may want this core
    return;
  }
  push_back(caller);
  wait_for_others();
}

/// Lands in the name of no lane, so what would be wrong then is found here.
void BlockState::start_copy(const hone_host::AsyncCopy& copy) {
  const auto to = reinterpret_cast<std::uintptr_t>(copy.to);
  if (to < smem_begin || to > smem_end || copy.bytes > smem_end - to) {
    self().site = copy.site;
    failure.number = copy.bytes;
    fail(Kind::copy_leaves_smem, {&self()});
  }
  copies.start(self().index, copy);
}

namespace {

void on_access(const void* address, unsigned long bytes, hone_host::AccessKind kind, const void* return_address) {
  auto& state = static_cast<BlockState&>(hone_host::this_block());
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const bool is_local = at - reinterpret_cast<std::uintptr_t>(state.arena) < hone_host::kArenaBytes ||
                        at - reinterpret_cast<std::uintptr_t>(&state) < sizeof(state);
  if (state.work->trace == nullptr || is_local) return;
  const Lane& lane = state.self();
  state.work->trace->access(lane.index, lane.thread, at, bytes, kind,
                            reinterpret_cast<std::uintptr_t>(return_address) - state.work->code.module_begin);
}

/// Ends the lane that runs, for what a module found in it.
template <Kind kKind, auto kMember, class Finding>
void end_for(const Finding& finding) {
  auto& state = static_cast<BlockState&>(hone_host::this_block());
  Lane& lane = state.self();
  lane.site = finding.site;
  state.failure.*kMember = finding;
  state.fail(kKind, {&lane});
}

}  // namespace

const hone_host::Hooks kHostHooks{
    .on_access = on_access,
    .on_overflow = end_for<Kind::signed_overflow, &BlockFailure::overflow>,
    .on_bad_index = end_for<Kind::bad_index, &BlockFailure::bad_index>,
    .on_bad_shift = end_for<Kind::bad_shift, &BlockFailure::bad_shift>,
    .on_bad_conversion = end_for<Kind::bad_conversion, &BlockFailure::bad_conversion>,
    .on_dead_end = end_for<Kind::dead_end, &BlockFailure::dead_end>};

const hone_host::Services kHostServices{
    .barrier = [](BarrierOp op, bool predicate, Site site) {
      return static_cast<BlockState&>(hone_host::this_block()).barrier(op, predicate, site);
    },
    .warp_op = [](WarpCall* call) { static_cast<BlockState&>(hone_host::this_block()).warp_op(*call); },
    .fence = [](hone_host::FenceScope scope) {
      static char of_device;
      auto& state = static_cast<BlockState&>(hone_host::this_block());
      void* const token = scope == hone_host::FenceScope::device ? &of_device : &state.fence_token;
      sanitizer::acquire(token);
      sanitizer::release(token);
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      if (state.work->trace) state.work->trace->fence(state.self().index, scope);
    },
    .poll = [](Site site) { static_cast<BlockState&>(hone_host::this_block()).poll(site); },
    .trap = [](Site site) {
      auto& state = static_cast<BlockState&>(hone_host::this_block());
      state.self().site = site;
      state.fail(Kind::trap, {&state.self()});
    },
    .assertion_failed = [](const char* expression, Site site) {
      auto& state = static_cast<BlockState&>(hone_host::this_block());
      state.self().site = site;
      state.failure.text = expression;
      state.fail(Kind::assertion, {&state.self()});
    },
    .nanoseconds = [] {
      return static_cast<unsigned long long>(std::chrono::steady_clock::now().time_since_epoch().count());
    },
    .start_copy = [](const hone_host::AsyncCopy& copy) {
      static_cast<BlockState&>(hone_host::this_block()).start_copy(copy);
    },
    .end_copy_group = [] {
      auto& state = static_cast<BlockState&>(hone_host::this_block());
      state.copies.end_group(state.self().index);
    },
    .wait_for_copy_groups = [](unsigned left) {
      auto& state = static_cast<BlockState&>(hone_host::this_block());
      state.copies.wait_for_groups(state.self().index, left);
    },
};

}  // namespace hone
