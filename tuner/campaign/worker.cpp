#include "tuner/campaign/worker.h"

#include <unistd.h>

#include <hone/error.h>
#include <hone/session.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <utility>
#include <variant>

#include "tuner/campaign/compilers.h"
#include "tuner/campaign/consolidate_winners.h"
#include "tuner/campaign/problem_json.h"
#include "tuner/campaign/standard_streams.h"
#include "tuner/campaign/tune_problem.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

/// Leaves behind which candidate is about to run.
class RunningRecord {
 public:
  void write(const Problem& problem, const Candidate& candidate) {
    if (!last_ || last_ != candidate) {
      last_ = candidate;
      text_ = to_json(candidate, problem).dump();
    }
    std::array<char, kRunningBytes> record{};
    std::snprintf(record.data(), record.size(), "%llu %s", ++count_, text_.c_str());
    // The candidate runs even if it could not be written: at worst, nobody can be blamed.
    [[maybe_unused]] const ssize_t ignored = pwrite(kRunningDescriptor, record.data(), record.size(), 0);
  }

 private:
  unsigned long long count_ = 0;
  std::optional<Candidate> last_;
  std::string text_;
};

class Worker {
 public:
  explicit Worker(const std::function<std::shared_ptr<Device>(const std::string&)>& open_device)
      : open_device_(open_device) {}

  void run() {
    while (true) std::visit([this](const auto& request) { serve(request); }, requests_.next());
  }

 private:
  void serve(const OpenRequest& request) {
    device_ = compiling_elsewhere(open_device_(request.device), request.compiler, request.cores);
    if (request.objective == Objective::energy) require_energy_counter(*device_);
    SessionOptions options;
    options.on_miss = MissPolicy::error;
    options.objective = request.objective;
    options.cache_path = request.cache_path;
    options.cache_max_bytes = request.max_bytes;
    options.load_binaries = request.load_binaries;
    options.system_caches = request.system_caches;
    session_.emplace(device_, options);
    const DeviceFacts& facts = device_->facts();
    answer(ReadyAnswer{.name = facts.name,
                       .kind = facts.kind,
                       .identity = tuning_identity(facts),
                       .free_memory_bytes = device_->free_memory_bytes(),
                       .peak_gbps = peak_bandwidth_gbps(facts),
                       .seen = device_->condition().seen});
  }

  void serve(const LookUpRequest& request) {
    LookedUpAnswer found;
    for (const Problem& problem : request.problems) found.items.push_back(look_up(*session_, problem));
    answer(std::move(found));
  }

  void serve(const TuneRequest& request) {
    disturbance_.clear();
    CampaignItem item = tune_problem(*session_, request, hooks(request.problem));
    if (item.discarded_samples > 0) item.disturbance = disturbance_;
    answer(TunedAnswer{std::move(item)});
  }

  void serve(const ConsolidateRequest& request) {
    const std::uint64_t not_stored_before = session_->counters().not_stored;
    ConsolidatedAnswer consolidated = consolidate_winners(*session_, request, hooks(request.problems.front()));
    require_stored(*session_, not_stored_before);
    answer(std::move(consolidated));
  }

  void serve(const StopRequest&) {}  // the stream has seen to it

  void serve(const CompileRequest&) { throw CommandError(ExitCode::failed, "a worker was asked to compile"); }

  WorkHooks hooks(const Problem& problem) {
    return {.stop = requests_.stop(),
            .on_progress =
                [this](const TuningProgress& progress) {
                  if (const std::string seen = device_->condition().seen; !seen.empty()) disturbance_ = seen;
                  answer(ProgressAnswer{progress});
                },
            .on_run = [this, problem](const Candidate& candidate) { running_.write(problem, candidate); }};
  }

  const std::function<std::shared_ptr<Device>(const std::string&)>& open_device_;
  RequestStream requests_;
  RunningRecord running_;
  std::string disturbance_;  ///< what was seen last during the tuning that runs
  std::shared_ptr<Device> device_;
  std::optional<Session> session_;
};

}  // namespace

int run_worker(const std::function<std::shared_ptr<Device>(const std::string&)>& open_device) {
  FailedAnswer failed;
  try {
    // Never destroyed: a device that is lost may not answer its destructor, and the reader goes on to the end.
    (new Worker(open_device))->run();
  } catch (const Error& error) {
    failed.message = error.what();
    if (error.code() == ErrorCode::device_lost) failed.failure = WorkerFailure::device_lost;
    if (error.code() == ErrorCode::cache_failed) failed.failure = WorkerFailure::cache;
    if (error.code() == ErrorCode::io_failed) failed.failure = WorkerFailure::files;
    if (error.code() == ErrorCode::not_found || error.code() == ErrorCode::unsupported)
      failed.failure = WorkerFailure::absent;
  } catch (const std::exception& error) {
    failed.message = error.what();
  }
  answer(failed);
  _exit(0);
}

}  // namespace hone::tuner
