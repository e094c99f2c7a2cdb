// Session::Impl: connects the parts of a session, and takes a call from one to the next.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <hone/error.h>
#include <hone/session.h>

#include "runtime/dispatch/cache_lookup.h"
#include "runtime/dispatch/miss_mutex.h"
#include "runtime/dispatch/nearest_winner.h"
#include "runtime/dispatch/plan_table.h"
#include "runtime/dispatch/session_core.h"
#include "runtime/dispatch/tuning_service.h"
#include "runtime/dispatch/workspace_pool.h"

namespace hone {

class Session::Impl {
 public:
  Impl(std::shared_ptr<Device> device, SessionOptions options);

  Choice launch(const Problem& problem, std::span<void* const> buffers, Stream stream);

  /// The plan of a problem: from the table, the cache file, or by the miss policy. Waits while another thread misses.
  Resolved resolve(const Problem& problem, bool capturing);

  /// The plan that serves `problem` from now on, after the device has refused to hold all blocks of the grid of
  /// `refused` at once. Waits while another thread misses. Throws device_failed where the session is pinned, not_tuned
  /// under MissPolicy::error, and what TuningService::choose_resident() throws where no other policy runs.
  Resolved replace_refused(const Problem& problem, const LoadedPlan& refused, const NotResident& why, bool capturing);

  Tuning tune(const Problem& problem, const TuningOptions& options);
  std::optional<Tuning> stored_tuning(const Problem& problem) { return core_.cache().find_tuning(problem); }
  DeviceLimits stored_limits() { return core_.cache().find_limits().value_or(DeviceLimits{}); }
  Tuning compare(const Problem& problem, const TuningOptions& options);
  void adopt(const Tuning& tuning, std::span<const Problem> served);
  void recycle_workspaces() { workspaces_.recycle(); }
  void pin();
  bool is_pinned() const { return plans_.is_pinned(); }
  std::string fingerprint();
  int agree(Communicator& communicator, int from);

  SessionCore& core() { return core_; }

 private:
  void enqueue(const LoadedPlan& plan, const Problem& problem, std::span<void* const> buffers, const StreamState& state,
               Stream stream);
  Resolved miss(const Problem& problem, bool capturing);
  Resolved postpone(const Problem& problem);
  Error not_tuned(const Problem& problem);
  std::string how_to_tune(const Problem& problem, bool is_noted);
  void report_untuned(const Problem& problem, ChoiceSource source);
  void require_unpinned(std::string_view function) const;
  int take_over(std::string_view winners);

  SessionCore core_;
  WorkspacePool workspaces_;
  PlanTable plans_;
  CacheLookup lookup_;
  NearestWinner nearest_;
  TuningService tuning_;
  MissMutex miss_mutex_;  ///< one miss at a time: tunings would disturb each other's measurements
  bool has_reported_untuned_ = false;
};

}  // namespace hone
