#include "runtime/device/host/fault_guard.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>

#include "runtime/device/host/block_state.h"

namespace hone {
namespace {

using Kind = BlockFailure::Kind;

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kSignalStackBytes = 64 * 1024;

/// Half of what Linux lets a process have by default (vm.max_map_count), at two mappings a stack.
constexpr int kMostGuardedStacks = 16384;
std::atomic<int> guarded_stacks{0};

/// The state whose lanes run on this thread. Reading a key never allocates, which a handler must not; nor does a
/// thread_local of the static TLS block, but with one the library could not be loaded by dlopen().
pthread_key_t guarded_state_key() {
  static const pthread_key_t key = [] {
    pthread_key_t created;
    if (const int failure = pthread_key_create(&created, nullptr); failure != 0)
      throw std::system_error(failure, std::generic_category(), "pthread_key_create");
    return created;
  }();
  return key;
}

BlockState* guarded_state() { return static_cast<BlockState*>(pthread_getspecific(guarded_state_key())); }

/// A signal that is handled here, with the failure of a lane that it stands for and the handler that it had before.
/// Where compilers know that an operation is undefined, as a division by a constant 0, they may put a trap in its
/// place, which is SIGILL on x86 and SIGTRAP on ARM.
struct Handled {
  int signal;
  Kind kind;
  struct sigaction previous;
};
Handled handled[] = {{SIGSEGV, Kind::wild_access, {}},
                     {SIGBUS, Kind::wild_access, {}},
                     {SIGFPE, Kind::arithmetic_fault, {}},
                     {SIGILL, Kind::undefined_operation, {}},
                     {SIGTRAP, Kind::undefined_operation, {}}};

const Handled& handled_by(int signal) {
  return *std::find_if(std::begin(handled), std::end(handled),
                       [=](const Handled& one) { return one.signal == signal; });
}

char interrupt_tag = 0;  ///< marks our own signals by its address

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
  const CodeRange& code = state.work->code;
  const std::uintptr_t at = registers_of(context).program_counter;
  if (at - code.begin < code.bytes) state.failure.code_address = at - code.module_begin;
  unsigned char* const top = state.stack_bottom(state.self().stack) + hone_host::kStackBytes - 256;
  redirect(context, fail_lane, &state, top);
}

/// True if the address lies in the guard page of the stack that the running lane has.
bool overflows(const BlockState& state, const siginfo_t& info, const ucontext_t& context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  if (info.si_code <= 0 || !in_arena(state, address) || !in_arena(state, registers_of(context).stack_pointer))
    return false;
  const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(state.arena);
  const Lane& running = state.lanes[static_cast<const Lane*>(state.lane)->index];
  return offset / hone_host::kStackBytes == running.stack && offset % hone_host::kStackBytes / kPageBytes == 1;
}

/// True if it is the kernel itself that runs, and not a library that it has called.
bool in_kernel(const BlockState& state, const Registers& at) {
  return in_arena(state, at.stack_pointer) && at.program_counter - state.work->code.begin < state.work->code.bytes;
}

/// Sanitizers have better reports of a wild access: with the source line.
bool is_ours(const BlockState& state, Kind kind, const siginfo_t& info, const ucontext_t& context) {
  const bool has_better = kind == Kind::wild_access && (HONE_ASAN || HONE_TSAN);
  return !has_better && info.si_code > 0 && in_kernel(state, registers_of(context));
}

/// Ends the running lane if the watchdog means this one. Met outside of the kernel, it is left for the next time.
void look_whether_overdue(BlockState& state, ucontext_t& context) {
  if (!in_kernel(state, registers_of(context))) return;
  const auto deadline = static_cast<std::uint64_t>(state.work->deadline.count());
  if (state.overdue_turn == state.turns) {
    end_lane(state, Kind::endless_lane, deadline, context);
  } else if (state.overdue_block == state.blocks_begun) {
    end_lane(state, Kind::endless_block, Watchdog::kBlockDeadlines * deadline, context);
  }
}

void pass_on(int number, siginfo_t* info, void* context) {
  const struct sigaction& previous_action = handled_by(number).previous;
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
  BlockState* const state = guarded_state();
  if (info->si_code == SI_QUEUE && info->si_value.sival_ptr == &interrupt_tag) {
    if (state != nullptr) look_whether_overdue(*state, context);
  } else if (state != nullptr && overflows(*state, *info, context)) {
    end_lane(*state, Kind::stack_overflow, hone_host::kStackBytes, context);
  } else if (const Kind kind = handled_by(number).kind; state != nullptr && is_ours(*state, kind, *info, context)) {
    end_lane(*state, kind, reinterpret_cast<std::uintptr_t>(info->si_addr), context);
  } else {
    pass_on(number, info, raw_context);
  }
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (Handled& one : handled) sigaction(one.signal, &action, &one.previous);
  });
}

/// The stack for handlers that a thread needs, unless it has one already. Handlers of the program may use it as well.
class SignalStack {
 public:
  SignalStack() {
    stack_t current{};
    if (sigaltstack(nullptr, &current) != 0 || (current.ss_flags & SS_DISABLE) == 0) return;
    const std::size_t bytes = std::max(kSignalStackBytes, static_cast<std::size_t>(sysconf(_SC_SIGSTKSZ)));
    memory_.reset(new (std::nothrow) unsigned char[bytes]);
    if (memory_ == nullptr) return;
    const stack_t stack{.ss_sp = memory_.get(), .ss_flags = 0, .ss_size = bytes};
    if (sigaltstack(&stack, nullptr) != 0) memory_.reset();
  }
  ~SignalStack() {
    stack_t current{};
    if (memory_ == nullptr || sigaltstack(nullptr, &current) != 0 || current.ss_sp != memory_.get()) return;
    const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  std::unique_ptr<unsigned char[]> memory_;
};

}  // namespace

FaultGuard::FaultGuard(BlockState& state, Watchdog& watchdog) : state_(state), watchdog_(watchdog) {
  static thread_local const SignalStack signal_stack;
  pthread_setspecific(guarded_state_key(), &state_);  // creates the key before there is a handler that reads it
  install_handler();
  watchdog_.add(state_);
}

FaultGuard::~FaultGuard() {
  watchdog_.remove(state_);
  pthread_setspecific(guarded_state_key(), nullptr);
}

void interrupt(pthread_t thread) {
  struct sigaction current {};
  if (sigaction(SIGSEGV, nullptr, &current) != 0 || current.sa_sigaction != on_signal) return;
  sigval tag{};
  tag.sival_ptr = &interrupt_tag;
  pthread_sigqueue(thread, SIGSEGV, tag);
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
