// SmPool: the SMs of a host device, each an OS thread with a BlockRunner.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device/host/block_runner.h"

namespace hone {

/// The calling thread is SM 0, so that a launch of one block wakes nobody; the others are threads that live as long
/// as the pool and are started by the first launch that needs them. One run() at a time.
class SmPool {
 public:
  explicit SmPool(int sm_count);
  ~SmPool();
  SmPool(const SmPool&) = delete;
  SmPool& operator=(const SmPool&) = delete;

  int size() const { return sm_count_; }

  /// Runs `work` on `participants` SMs at once, the caller's among them, and returns when all have ended. `work` must
  /// not throw.
  void run(int participants, const std::function<void(BlockRunner&)>& work);

 private:
  struct Worker;
  void serve(Worker& worker);

  int sm_count_;
  std::unique_ptr<BlockRunner> first_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::mutex mutex_;
  std::condition_variable all_done_;
  const std::function<void(BlockRunner&)>* work_ = nullptr;
  int running_ = 0;
  bool stopping_ = false;
};

}  // namespace hone
