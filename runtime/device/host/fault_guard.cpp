#include "runtime/device/host/fault_guard.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "runtime/device/host/block_state.h"

namespace hone {
namespace {

using Kind = BlockFailure::Kind;

/// The timer fires so often within a deadline, and every kRetry once a lane is due but was met outside of the kernel.
constexpr int kTicksPerDeadline = 4;
constexpr std::chrono::milliseconds kRetry{5};

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kSignalStackBytes = 64 * 1024;

/// Half of what Linux lets a process have by default (vm.max_map_count), at two mappings a stack.
constexpr int kMostGuardedStacks = 16384;
std::atomic<int> guarded_stacks{0};

/// The state whose lanes run on this thread. In the static TLS block, since a handler must not allocate it.
[[gnu::tls_model("initial-exec")]] thread_local BlockState* guarded_state = nullptr;

struct sigaction previous_action {};
char timer_tag = 0;  ///< marks the signals of our timers by its address

struct Registers {
  std::uintptr_t program_counter = 0, stack_pointer = 0;
};

#if defined(__x86_64__)
Registers registers_of(const ucontext_t& context) {
  return {static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]),
          static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP])};
}

/// Lets the interrupted thread go on as if `function(state)` had been called on an empty stack.
void redirect(ucontext_t& context, void (*function)(BlockState*), BlockState* state, unsigned char* stack_top) {
  constexpr greg_t kDirectionFlag = 0x400;
  auto& registers = context.uc_mcontext.gregs;
  registers[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(function));
  registers[REG_RDI] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(state));
  registers[REG_RSP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(stack_top) - 8);  // as after a call
  registers[REG_EFL] &= ~kDirectionFlag;
}
#elif defined(__aarch64__)
Registers registers_of(const ucontext_t& context) { return {context.uc_mcontext.pc, context.uc_mcontext.sp}; }

void redirect(ucontext_t& context, void (*function)(BlockState*), BlockState* state, unsigned char* stack_top) {
  context.uc_mcontext.pc = reinterpret_cast<std::uintptr_t>(function);
  context.uc_mcontext.regs[0] = reinterpret_cast<std::uintptr_t>(state);
  context.uc_mcontext.sp = reinterpret_cast<std::uintptr_t>(stack_top);
}
#else
Registers registers_of(const ucontext_t&) { return {}; }  // outside of every arena: no signal is taken for a lane's
void redirect(ucontext_t&, void (*)(BlockState*), BlockState*, unsigned char*) {}
#endif

bool in_arena(const BlockState& state, std::uintptr_t address) {
  return address - reinterpret_cast<std::uintptr_t>(state.arena) < hone_host::kArenaBytes;
}

void fail_lane(BlockState* state) {
  const Lane& at = state->self();
  state->failure.add({at.thread, at.site, at.site.file != nullptr ? "was last seen at" : "had not met others yet"});
  state->leave_to_main();
}

void end_lane(BlockState& state, Kind kind, std::uint64_t number, ucontext_t& context) {
  state.failure.kind = kind;
  state.failure.number = number;
  unsigned char* const top = state.stack_bottom(state.self().stack) + hone_host::kStackBytes - 256;
  redirect(context, fail_lane, &state, top);
}

/// Whether the address lies in the guard page of the stack that the running lane has.
bool overflows(const BlockState& state, const siginfo_t& info, const ucontext_t& context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  if (info.si_code <= 0 || !in_arena(state, address) || !in_arena(state, registers_of(context).stack_pointer)) return false;
  const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(state.arena);
  const Lane& running = state.lanes[static_cast<const Lane*>(state.lane)->index];
  return offset / hone_host::kStackBytes == running.stack && offset % hone_host::kStackBytes / kPageBytes == 1;
}

void set_timer(timer_t timer, std::chrono::nanoseconds interval) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec time{static_cast<time_t>(interval.count() / kSecond), static_cast<long>(interval.count() % kSecond)};
  const itimerspec both{time, time};
  timer_settime(timer, 0, &both, nullptr);
}

std::chrono::nanoseconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// Notes which turn and block run; `now` is when they were first seen unless they have been before.
void note_progress(BlockState& state, std::chrono::nanoseconds now) {
  FaultWatch& watch = state.watch;
  if (state.turns != watch.turns) watch.turn_seen = now;
  if (state.blocks_begun != watch.blocks) watch.block_seen = now;
  watch.turns = state.turns;
  watch.blocks = state.blocks_begun;
}

void tick(BlockState& state, ucontext_t& context) {
  FaultWatch& watch = state.watch;
  const std::chrono::nanoseconds now = processor_time();
  note_progress(state, now);
  const bool lane_is_due = now - watch.turn_seen >= watch.deadline;
  const auto block_deadline = watch.deadline * FaultGuard::kBlockDeadlines;
  if (!lane_is_due && now - watch.block_seen < block_deadline) return;

  const Registers at = registers_of(context);
  const bool in_kernel = at.program_counter - state.work->code.begin < state.work->code.bytes;
  if (!in_kernel || !in_arena(state, at.stack_pointer)) return set_timer(watch.timer, kRetry);
  const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(lane_is_due ? watch.deadline : block_deadline);
  end_lane(state, lane_is_due ? Kind::endless_lane : Kind::endless_block, static_cast<std::uint64_t>(spent.count()),
           context);
}

void pass_on(int number, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(number, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(number);
  } else {
    signal(number, SIG_DFL);  // the instruction faults once more and ends the process
    if (info->si_code <= 0) raise(number);
  }
}

void on_signal(int number, siginfo_t* info, void* raw_context) {
  auto& context = *static_cast<ucontext_t*>(raw_context);
  BlockState* const state = guarded_state;
  if (info->si_code == SI_TIMER && info->si_value.sival_ptr == &timer_tag) {
    if (state != nullptr) tick(*state, context);
  } else if (state != nullptr && overflows(*state, *info, context)) {
    end_lane(*state, Kind::stack_overflow, hone_host::kStackBytes, context);
  } else {
    pass_on(number, info, raw_context);
  }
}

/// Whether SIGSEGV comes to on_signal().
bool handler_is_installed() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous_action);
  });
  struct sigaction current {};
  return sigaction(SIGSEGV, nullptr, &current) == 0 && current.sa_sigaction == on_signal;
}

bool create_timer(timer_t& timer) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGSEGV;
  event.sigev_value.sival_ptr = &timer_tag;
  event._sigev_un._tid = gettid();
  return timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0;
}

}  // namespace

FaultGuard::FaultGuard(BlockState& state, std::chrono::milliseconds deadline) : watch_(state.watch) {
  if (!handler_is_installed()) return;
  if (watch_.signal_stack == nullptr) {
    watch_.signal_stack_bytes = std::max(kSignalStackBytes, static_cast<std::size_t>(sysconf(_SC_SIGSTKSZ)));
    watch_.signal_stack = std::make_unique<unsigned char[]>(watch_.signal_stack_bytes);
  }
  const stack_t stack{.ss_sp = watch_.signal_stack.get(), .ss_flags = 0, .ss_size = watch_.signal_stack_bytes};
  has_stack_ = sigaltstack(&stack, &previous_stack_) == 0;
  if (!has_stack_) return;
  guarded_state = &state;
  watch_.deadline = deadline;
  watch_.turns = watch_.blocks = ~std::uint64_t{0};
  note_progress(state, processor_time());
  has_timer_ = create_timer(watch_.timer);
  if (has_timer_) set_timer(watch_.timer, watch_.deadline / kTicksPerDeadline);
}

FaultGuard::~FaultGuard() {
  if (has_timer_) timer_delete(watch_.timer);
  guarded_state = nullptr;
  if (has_stack_) sigaltstack(&previous_stack_, nullptr);
}

bool guard_stack(unsigned char* stack_bottom) {
  static const bool pages_fit = sysconf(_SC_PAGESIZE) == static_cast<long>(kPageBytes);
  if (!pages_fit) return false;
  if (guarded_stacks.fetch_add(1, std::memory_order_relaxed) < kMostGuardedStacks &&
      mprotect(stack_bottom + kPageBytes, kPageBytes, PROT_NONE) == 0) {
    return true;
  }
  guarded_stacks.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

void forget_guarded_stacks(int stacks) { guarded_stacks.fetch_sub(stacks, std::memory_order_relaxed); }

}  // namespace hone
