#include "runtime/device/host/watchdog.h"

#include <time.h>

#include <algorithm>

#include "runtime/device/host/block_state.h"
#include "runtime/device/host/fault_guard.h"

namespace hone {
namespace {

/// How often it looks within a deadline, and how often once a lane is overdue: that one may be outside of its kernel.
constexpr int kLooksPerDeadline = 4;
constexpr std::chrono::milliseconds kRetry{5};

}  // namespace

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::start() {
  const std::lock_guard lock(mutex_);
  running_.reserve(kMostSms);
  if (!thread_.joinable()) thread_ = std::thread(&Watchdog::watch, this);
}

void Watchdog::add(BlockState& state) noexcept {
  Sm sm{.state = &state, .thread = pthread_self()};
  pthread_getcpuclockid(sm.thread, &sm.clock);
  const std::lock_guard lock(mutex_);
  if (running_.size() < running_.capacity()) running_.push_back(sm);
  is_used_ = true;
  if (idle_) wake_.notify_one();
  idle_ = false;
}

void Watchdog::remove(BlockState& state) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(running_, [&](const Sm& sm) { return sm.state == &state; });
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  std::chrono::milliseconds pause = deadline_ / kLooksPerDeadline;
  while (!stopping_) {
    idle_ = running_.empty() && !is_used_;
    if (idle_) wake_.wait(lock, [this] { return stopping_ || is_used_; });
    is_used_ = false;
    wake_.wait_for(lock, pause, [this] { return stopping_; });
    bool any_is_overdue = false;
    for (Sm& sm : running_) any_is_overdue |= look_at(sm);
    pause = any_is_overdue ? kRetry : deadline_ / kLooksPerDeadline;
  }
}

Watchdog::Time Watchdog::between(const Moment& begin, const Moment& end) const {
  const Time used = end.processor - begin.processor;
  if (!counts_waiting_) return used;
  return std::max(used, std::min(end.passing - begin.passing, kMostWaiting * used));
}

/// True if the SM's lane or block is overdue.
bool Watchdog::look_at(Sm& sm) {
  timespec time{};
  if (clock_gettime(sm.clock, &time) != 0) return false;
  const Moment now{.processor = std::chrono::seconds(time.tv_sec) + Time(time.tv_nsec),
                   .passing = std::chrono::steady_clock::now().time_since_epoch()};
  const std::uint64_t turn = sm.state->turns.load(std::memory_order_relaxed);
  const std::uint64_t block = sm.state->blocks_begun.load(std::memory_order_relaxed);
  if (turn != sm.turn) sm.turn_seen = now;
  if (block != sm.block) sm.block_seen = now;
  sm.turn = turn;
  sm.block = block;
  const bool lane_is_overdue = between(sm.turn_seen, now) >= deadline_;
  const bool block_is_overdue = between(sm.block_seen, now) >= kBlockDeadlines * deadline_;
  if (lane_is_overdue) sm.state->overdue_turn.store(turn, std::memory_order_relaxed);
  if (block_is_overdue) sm.state->overdue_block.store(block, std::memory_order_relaxed);
  if (!lane_is_overdue && !block_is_overdue) return false;
  interrupt(sm.thread);
  return true;
}

}  // namespace hone
