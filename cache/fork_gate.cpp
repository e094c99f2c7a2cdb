#include "cache/fork_gate.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace hone::cache {
namespace {

constexpr std::chrono::microseconds kPause(200);

/// A fork concerns the process, and so does this: the only state of the cache that outlives a call. Pauses instead of a
/// condition variable, whose waiters a child would inherit without their threads.
struct Process {
  std::mutex mutex;  ///< held by the forking thread from before the fork until after it
  int open = 0;
  std::atomic<bool> forking = false;
};

Process& process() {
  static Process state;
  return state;
}

void before_fork() {
  Process& state = process();
  state.forking = true;
  for (;;) {
    state.mutex.lock();
    if (state.open == 0) return;
    state.mutex.unlock();
    std::this_thread::sleep_for(kPause);
  }
}

void after_fork() {
  process().forking = false;
  process().mutex.unlock();
}

}  // namespace

ForkGate::ForkGate() {
  static const int registered = ::pthread_atfork(before_fork, after_fork, after_fork);
  static_cast<void>(registered);
  Process& state = process();
  while (state.forking) std::this_thread::sleep_for(kPause);
  const std::scoped_lock lock(state.mutex);
  ++state.open;
}

ForkGate::~ForkGate() {
  const std::scoped_lock lock(process().mutex);
  --process().open;
}

}  // namespace hone::cache
