#include "runtime/device/host/sm_pool.h"

#include <algorithm>
#include <thread>

namespace hone {

struct SmPool::Worker {
  BlockRunner runner;
  std::condition_variable wake;
  bool called = false;
  std::thread thread;
};

SmPool::SmPool(int sm_count) : sm_count_(sm_count) {}

SmPool::~SmPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  for (const auto& worker : workers_) worker->wake.notify_one();
  for (const auto& worker : workers_) worker->thread.join();
}

void SmPool::run(int participants, const std::function<void(BlockRunner&)>& work) {
  if (first_ == nullptr) first_ = std::make_unique<BlockRunner>();
  const auto others = static_cast<std::size_t>(std::min(participants, sm_count_) - 1);
  while (workers_.size() < others) {
    auto worker = std::make_unique<Worker>();
    worker->thread = std::thread(&SmPool::serve, this, std::ref(*worker));
    workers_.push_back(std::move(worker));
  }
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    running_ = static_cast<int>(others);
    for (std::size_t i = 0; i < others; ++i) workers_[i]->called = true;
  }
  for (std::size_t i = 0; i < others; ++i) workers_[i]->wake.notify_one();
  work(*first_);
  std::unique_lock lock(mutex_);
  all_done_.wait(lock, [this] { return running_ == 0; });
}

void SmPool::serve(Worker& worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    worker.wake.wait(lock, [&] { return worker.called || stopping_; });
    if (stopping_) return;
    worker.called = false;
    lock.unlock();
    (*work_)(worker.runner);
    lock.lock();
    if (--running_ == 0) all_done_.notify_one();
  }
}

}  // namespace hone
