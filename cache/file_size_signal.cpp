#include "cache/file_size_signal.h"

#include <pthread.h>

#include <ctime>

namespace hone::cache {
namespace {

/// Each thread has its own.
struct State {
  int alive = 0;
  bool was_blocked = false;
  bool was_pending = false;
};

thread_local State held_back;

::sigset_t the_signal() {
  ::sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

}  // namespace

FileSizeSignal::FileSizeSignal() noexcept {
  if (held_back.alive++ > 0) return;
  const ::sigset_t set = the_signal();
  ::sigset_t before, pending;
  ::pthread_sigmask(SIG_BLOCK, &set, &before);
  held_back.was_blocked = sigismember(&before, SIGXFSZ) == 1;
  held_back.was_pending = held_back.was_blocked && ::sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

FileSizeSignal::~FileSizeSignal() {
  if (--held_back.alive > 0) return;
  const ::sigset_t set = the_signal();
  const ::timespec at_once{};
  // The kernel sends it to the thread that wrote, so none of another's is taken.
  if (!held_back.was_pending) ::sigtimedwait(&set, nullptr, &at_once);
  if (!held_back.was_blocked) ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace hone::cache
