// Watchdog: notices SMs whose lanes or blocks run for too long.
#pragma once

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace hone {

struct BlockState;

/// Marks a lane that uses `deadline` of processor time without meeting others (BlockState::overdue_turn) and a block
/// that uses kBlockDeadlines times as much (overdue_block), and interrupts their thread. With `counts_waiting`, the
/// time that passes is counted instead, up to kMostWaiting times the processor time: a machine that is busy with other
/// programs makes it hardly longer, and a program that was stopped loses no lanes. The thread that looks for them
/// sleeps while no SM runs. Thread-safe.
class Watchdog {
 public:
  static constexpr int kBlockDeadlines = 10;
  static constexpr int kMostWaiting = 4;
  static constexpr std::size_t kMostSms = 4096;

  Watchdog(std::chrono::milliseconds deadline, bool counts_waiting)
      : deadline_(deadline), counts_waiting_(counts_waiting) {}
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Call before add(). Throws std::system_error or std::bad_alloc when there is no thread or memory to be had.
  void start();

  /// The calling thread runs lanes of `state` until remove(). Those beyond kMostSms at
  /// a time are not looked at.
  void add(BlockState& state) noexcept;
  void remove(BlockState& state) noexcept;

 private:
  using Time = std::chrono::nanoseconds;

  /// A moment by two clocks.
  struct Moment {
    Time processor{}, passing{};
  };

  struct Sm {
    BlockState* state = nullptr;
    pthread_t thread{};
    clockid_t clock{};  ///< of the thread's processor time
    std::uint64_t turn = ~std::uint64_t{0}, block = ~std::uint64_t{0};  ///< BlockState's counts, when last looked at
    Moment turn_seen{}, block_seen{};                                  ///< when they were first seen
  };

  void watch();
  bool look_at(Sm& sm);
  Time between(const Moment& begin, const Moment& end) const;

  const std::chrono::milliseconds deadline_;
  const bool counts_waiting_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Sm> running_;
  bool idle_ = false;     ///< the thread sleeps until add() wakes it
  bool is_used_ = false;  ///< an SM was added since the thread last looked
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace hone
