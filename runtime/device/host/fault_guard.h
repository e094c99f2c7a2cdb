// FaultGuard: ends lanes that would not come back by themselves: those that overflow their stack or never end.
#pragma once

#include <signal.h>
#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace hone {

struct BlockState;

/// What a FaultGuard keeps from launch to launch.
struct FaultWatch {
  std::unique_ptr<unsigned char[]> signal_stack;  ///< made by the first guard
  std::size_t signal_stack_bytes = 0;
  timer_t timer{};
  std::chrono::nanoseconds deadline{};
  std::uint64_t turns = 0, blocks = 0;            ///< BlockState's, when the timer last fired
  std::chrono::nanoseconds turn_seen{}, block_seen{};  ///< the thread's processor time when it first fired in them
};

/// While it lives, on the thread that made it: a lane of `state` that touches the guard page below its stack, that runs
/// for `deadline` of processor time without meeting others, or whose block runs for kBlockDeadlines times as long, fails
/// its block; the thread goes on after the block. Lanes are only taken out of the kernel's own code, never out of a
/// library that it calls, except on a stack overflow.
///
/// The first one installs a handler for SIGSEGV in the process, for good; what is not about a lane goes to the handler
/// that was there before. A program that installs its own later does without the guard: overflows then end it, endless
/// loops do not end. The timer sends SIGSEGV as well: ThreadSanitizer holds back signals that do not look like a fault.
class FaultGuard {
 public:
  static constexpr int kBlockDeadlines = 10;

  FaultGuard(BlockState& state, std::chrono::milliseconds deadline);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

 private:
  FaultWatch& watch_;
  stack_t previous_stack_{};
  bool has_stack_ = false;
  bool has_timer_ = false;
};

/// Makes the page above the lowest one of a stack inaccessible, which the lowest of stack 0 is not: it holds the block's
/// address. Returns false when pages are too large for that or the process has its share of such pages (each splits a
/// mapping, and their number is limited): overflows of that stack are then seen at the lane's end only.
bool guard_stack(unsigned char* stack_bottom);

/// Gives back the share of `stacks` that were guarded.
void forget_guarded_stacks(int stacks);

}  // namespace hone
