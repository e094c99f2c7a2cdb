// Lane: one device of a campaign: its worker, what that works on, and what happens when it dies.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tuner/campaign/campaign.h"
#include "tuner/campaign/messages.h"
#include "tuner/campaign/worker_process.h"

namespace hone::tuner {

/// A request, and what has gone wrong with it so far.
struct Job {
  std::variant<LookUpRequest, TuneRequest, ConsolidateRequest> request;
  std::size_t target = 0;              ///< what it is for, by whoever gives it
  std::vector<std::string> died = {};  ///< candidates, with what happened
  int unexplained_deaths = 0;          ///< before any candidate ran
  double lost_ms = 0;                  ///< before the last worker got it: those of earlier ones, which hung or died

  template <class Of>
  bool is() const {
    return std::holds_alternative<Of>(request);
  }
};

struct JobFailed {
  std::string message;
};

/// The device cannot be opened any more, or looking up ended its worker.
struct DeviceGone {
  std::string message;
};

/// Winners could not be stored, or what is needed to compile could not be written.
struct FilesFailed {
  bool is_cache = false;
  std::string message;
};

/// A lane tells the campaign this: an answer, or why there is none.
using LaneEvent = std::variant<ReadyAnswer, ProgressAnswer, LookedUpAnswer, TunedAnswer, ConsolidatedAnswer, JobFailed,
                               DeviceGone, FilesFailed>;

/// Owns a worker process, starts it again when it dies or hangs, and then gives it the same job without the candidate
/// that it died of. Used by one thread.
class Lane {
 public:
  using Clock = std::chrono::steady_clock;

  Lane(OpenRequest open, const CampaignOptions& options);

  const std::string& device() const { return open_.device; }
  int descriptor() const { return worker_ ? worker_->descriptor() : -1; }
  bool is_idle() const { return is_ready_ && !job_; }
  bool is_gone() const { return !worker_; }
  const std::optional<Job>& job() const { return job_; }

  /// Only when idle.
  void give(Job job);

  /// Asks the worker to end its job early.
  void stop();

  /// Returns what has happened since; looks for deaths and hangs, too. To be called every tenth of a second, or when
  /// there is something to read.
  std::vector<LaneEvent> look();

  /// Takes the job that is done or failed out of the lane.
  Job take_job();

 private:
  void start();
  void send_job();
  void take(Answer&& answer, std::vector<LaneEvent>& events);
  void finish(LaneEvent&& answer, std::vector<LaneEvent>& events);
  void handle_death(const std::string& how, std::vector<LaneEvent>& events);
  void blame(const std::string& candidate, const std::string& how);
  bool hangs();

  OpenRequest open_;
  const CampaignOptions& options_;
  std::optional<WorkerProcess> worker_;
  std::optional<Job> job_;
  bool is_ready_ = false;
  bool was_ready_ = false;  ///< ever: a device that cannot be opened at first is the caller's mistake
  bool is_stopping_ = false;
  bool is_done_ = false;    ///< the worker has answered the job
  std::string last_words_;  ///< of a worker that gave up
  std::uint64_t runs_at_start_ = 0;
  std::uint64_t runs_seen_ = 0;
  Clock::time_point last_sign_;
  Clock::time_point given_at_;
};

}  // namespace hone::tuner
