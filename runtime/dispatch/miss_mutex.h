// MissMutex: lets one thread at a time miss, and says so where a thread would wait for itself.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include <hone/error.h>

namespace hone {

/// A mutex for std::scoped_lock and std::unique_lock. lock() throws invalid_argument where the calling thread has
/// locked it already: a callback of a tuning has then called the session.
class MissMutex {
 public:
  void lock() {
    if (is_mine())
      throw Error(ErrorCode::invalid_argument,
                  "a callback called the session while that was tuning or choosing for it, and would wait for itself; "
                  "call the session when the tuning is over, or call another one");
    mutex_.lock();
    owner_ = std::this_thread::get_id();
  }
  bool try_lock() {
    if (is_mine() || !mutex_.try_lock()) return false;
    owner_ = std::this_thread::get_id();
    return true;
  }
  void unlock() {
    owner_ = std::thread::id();
    mutex_.unlock();
  }

 private:
  bool is_mine() const { return owner_.load() == std::this_thread::get_id(); }

  std::mutex mutex_;
  std::atomic<std::thread::id> owner_;
};

}  // namespace hone
