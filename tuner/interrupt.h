// InterruptWatcher: Ctrl-C as a stop token.
#pragma once

#include <csignal>
#include <stop_token>
#include <thread>

namespace hone::tuner {

/// While it lives, the first SIGINT of the process stops token() and the second one kills. SIGINT is blocked in the
/// thread that makes it and in those (and the processes) started from there later, so make it before any other
/// thread exists. A SIGINT that the process ignores, as a background job does, stays ignored.
class InterruptWatcher {
 public:
  InterruptWatcher();
  ~InterruptWatcher();
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;

  std::stop_token token() const { return source_.get_token(); }

 private:
  void watch();

  std::stop_source source_;
  sigset_t former_mask_{};
  std::thread thread_;
};

}  // namespace hone::tuner
