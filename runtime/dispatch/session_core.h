// SessionCore: what all parts of a session use.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include <hone/session.h>

#include "runtime/choose/choose.h"
#include "runtime/dispatch/cache_bridge.h"
#include "runtime/dispatch/stats_file.h"
#include "runtime/jit/binary_memo.h"

namespace hone {

/// The device of a session, its options, its cache files, the code that it has compiled, and its counters. Thread-safe.
class SessionCore {
 public:
  SessionCore(std::shared_ptr<Device> device, SessionOptions options);

  const std::shared_ptr<Device>& device() const { return device_; }
  const DeviceFacts& facts() const { return device_->facts(); }
  const SessionOptions& options() const { return options_; }
  CacheBridge& cache() { return cache_; }
  BinaryMemo& memo() { return memo_; }

  /// Adds one: count(&SessionCounters::waits).
  void count(std::uint64_t SessionCounters::*counter);

  /// Counts a failure and, the first time for a file, reports it as the options say.
  void count_cache_failure(const cache::LayerFailure& failure);

  /// Notes, and the first time reports, that `policy` cannot serve `problem` for the reason `why`: its blocks have to
  /// be resident at once, and are not.
  void note_refused_grid(const Problem& problem, const Policy& policy, std::string_view why);

  /// True for policies whose blocks have to be resident at once, after the device has refused one: it is shared.
  bool is_refused(const ProblemClass& problem_class, const Policy& policy) const;
  Cooperation cooperation() const { return has_refused_grids_ ? Cooperation::refused : Cooperation::allowed; }

  SessionCounters counters() const;

 private:
  void write_stats();

  std::shared_ptr<Device> device_;
  SessionOptions options_;
  mutable std::mutex mutex_;
  SessionCounters counters_;
  StatsFile stats_;
  std::atomic<bool> has_reported_stats_ = false;  ///< that they cannot be written
  std::atomic<bool> has_refused_grids_ = false;
  CacheBridge cache_;  ///< reports failures to the members above, also while it is destroyed
  BinaryMemo memo_;    ///< its threads use the device until it is destroyed
};

}  // namespace hone
