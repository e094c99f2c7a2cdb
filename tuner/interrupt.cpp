#include "tuner/interrupt.h"

#include <pthread.h>

namespace hone::tuner {
namespace {

// Ends the watching thread; only ever sent to it, and blocked wherever it could arrive.
constexpr int kEndSignal = SIGUSR2;

sigset_t signals(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  return set;
}

}  // namespace

InterruptWatcher::InterruptWatcher() {
  const sigset_t blocked = signals({SIGINT, kEndSignal});
  pthread_sigmask(SIG_BLOCK, &blocked, &former_mask_);
  struct sigaction current {};
  sigaction(SIGINT, nullptr, &current);
  if (current.sa_handler != SIG_IGN) thread_ = std::thread([this] { watch(); });
}

InterruptWatcher::~InterruptWatcher() {
  if (thread_.joinable()) {
    pthread_kill(thread_.native_handle(), kEndSignal);
    thread_.join();
  }
  pthread_sigmask(SIG_SETMASK, &former_mask_, nullptr);
}

void InterruptWatcher::watch() {
  const sigset_t awaited = signals({SIGINT, kEndSignal});
  int signal = 0;
  sigwait(&awaited, &signal);
  if (signal == kEndSignal) return;
  source_.request_stop();
  // From here on SIGINT is not blocked in this thread, so the next one has its default effect.
  const sigset_t interrupt = signals({SIGINT});
  pthread_sigmask(SIG_UNBLOCK, &interrupt, nullptr);
  const sigset_t end = signals({kEndSignal});
  sigwait(&end, &signal);
}

}  // namespace hone::tuner
