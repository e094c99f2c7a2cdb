// FaultGuard: ends lanes that would not come back by themselves: those that overflow their stack, touch memory that is
// not there, divide by zero, run into a trap or never end.
#pragma once

#include "runtime/device/host/watchdog.h"

namespace hone {

struct BlockState;

/// While it lives, on the thread that made it: a lane of `state` fails its block when it touches the guard page below
/// its stack, when the processor stops it with a fault (left to the sanitizers where there are any), or when `watchdog`
/// finds that it takes too long; the thread goes on after the block. Lanes are only taken out of the kernel's own code,
/// never out of a library that it calls, except on a stack overflow.
///
/// The first one installs a handler for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGTRAP in the process, for good; what is
/// not about a lane goes to the handler that was there before. A program that installs its own later does without:
/// faults then end it, endless loops do not end. The watchdog sends SIGSEGV as well: ThreadSanitizer holds back signals
/// that do not look like a fault.
class FaultGuard {
 public:
  FaultGuard(BlockState& state, Watchdog& watchdog);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

 private:
  BlockState& state_;
  Watchdog& watchdog_;
};

/// Interrupts a thread that has a FaultGuard, so that it looks at BlockState::overdue. Does nothing when the handler is
/// no longer ours.
void interrupt(pthread_t thread);

/// Makes the page above the lowest one of a stack inaccessible, which the lowest of stack 0 is not: it holds the
/// block's address. Returns false when pages are too large for that or the process has its share of such pages (each
/// splits a mapping, and their number is limited): overflows of that stack are then seen at the lane's end only.
bool guard_stack(unsigned char* stack_bottom);

/// Gives back the share of `stacks` that were guarded.
void forget_guarded_stacks(int stacks);

}  // namespace hone
