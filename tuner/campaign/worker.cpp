#include "tuner/campaign/worker.h"

#include <unistd.h>

#include <hone/error.h>
#include <hone/session.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>

#include "tuner/campaign/compilers.h"
#include "tuner/campaign/orders.h"
#include "tuner/campaign/problem_text.h"
#include "tuner/campaign/share_winners.h"
#include "tuner/campaign/tune_problem.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

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
    // Whether it could be written or not, the candidate runs: at worst, nobody can be blamed.
    [[maybe_unused]] const ssize_t ignored = pwrite(kRunningDescriptor, record.data(), record.size(), 0);
  }

 private:
  unsigned long long count_ = 0;
  std::optional<Candidate> last_;
  std::string text_;
};

std::vector<ExcludedCandidate> excluded_from_json(const Json& list, const Problem& problem) {
  std::vector<ExcludedCandidate> excluded;
  for (const Json& entry : list)
    excluded.push_back({candidate_from_json(entry.at("candidate"), problem), entry.at("reason")});
  return excluded;
}

class Worker {
 public:
  explicit Worker(const std::function<std::shared_ptr<Device>(const std::string&)>& open_device)
      : open_device_(open_device) {}

  void run() {
    while (true) {
      const Json order = orders_.next();
      const std::string& kind = order.begin().key();
      const Json& body = order.begin().value();
      if (kind == "open") open(body);
      if (kind == "look_up") look_up_all(body);
      if (kind == "tune") tune(body);
      if (kind == "share") share(body);
    }
  }

 private:
  void open(const Json& order) {
    device_ = compiling_elsewhere(open_device_(order.at("device")), order.at("compiler"), order.at("cores"));
    SessionOptions options;
    options.on_miss = MissPolicy::error;
    options.cache_path = order.at("cache").get<std::string>();
    options.cache_max_bytes = order.at("max_bytes");
    options.load_binaries = order.at("load_binaries");
    for (const Json& path : order.at("system_caches")) options.system_caches.emplace_back(path.get<std::string>());
    session_.emplace(device_, options);
    const DeviceFacts& facts = device_->facts();
    const DeviceCondition condition = device_->condition();
    answer("ready", {{"name", facts.name},
                     {"kind", facts.kind},
                     {"identity", tuning_identity(facts)},
                     {"free_memory_bytes", device_->free_memory_bytes()},
                     {"peak_gbps", peak_bandwidth_gbps(facts)},
                     {"is_throttled", condition.is_throttled},
                     {"is_shared", condition.is_shared},
                     {"seen", condition.seen}});
  }

  void look_up_all(const Json& order) {
    Json items = Json::array();
    for (const Json& problem : order) items.push_back(to_json(look_up(*session_, problem_from_json(problem))));
    answer("looked_up", std::move(items));
  }

  void tune(const Json& order) {
    TuneRequest request{.problem = problem_from_json(order.at("problem")),
                        .weight = order.at("weight"),
                        .budget = milliseconds(order.at("budget_ms").get<std::int64_t>()),
                        .exhaustive = order.at("exhaustive"),
                        .inputs = inputs_of(order)};
    request.excluded = excluded_from_json(order.at("excluded"), request.problem);
    connect(request, order);
    disturbance_.clear();
    CampaignItem item = tune_problem(*session_, request);
    if (item.discarded_samples > 0) item.disturbance = disturbance_;
    answer("tuned", to_json(item));
  }

  void share(const Json& order) {
    ShareRequest request;
    for (const Json& problem : order.at("problems")) request.problems.push_back(problem_from_json(problem));
    request.may_change = order.at("may_change").get<std::vector<bool>>();
    request.most_regret = order.at("most_regret");
    request.budget = milliseconds(order.at("budget_ms").get<std::int64_t>());
    request.inputs = inputs_of(order);
    request.excluded = excluded_from_json(order.at("excluded"), request.problems.front());
    connect(request, order);
    const ShareResult result = share_winners(*session_, request);
    Json changed = Json::array();
    for (const CampaignItem& item : result.changed) changed.push_back(to_json(item));
    answer("shared", {{"line", to_json(result.line)}, {"changed", std::move(changed)}});
  }

  static InputState inputs_of(const Json& order) {
    return order.at("warm").get<bool>() ? InputState::warm : InputState::cold;
  }

  void connect(auto& request, const Json& order) {
    if (order.contains("next")) request.next = problem_from_json(order["next"]);
    request.stop = orders_.stop();
    request.on_progress = [this](const TuningProgress& progress) {
      if (const std::string seen = device_->condition().seen; !seen.empty()) disturbance_ = seen;
      answer("progress", to_json(progress));
    };
    request.on_run = [this, problem = first_of(request)](const Candidate& candidate) {
      running_.write(problem, candidate);
    };
  }

  static const Problem& first_of(const TuneRequest& request) { return request.problem; }
  static const Problem& first_of(const ShareRequest& request) { return request.problems.front(); }

  const std::function<std::shared_ptr<Device>(const std::string&)>& open_device_;
  Orders orders_;
  RunningRecord running_;
  std::string disturbance_;  ///< what was seen last during the tuning that runs
  std::shared_ptr<Device> device_;
  std::optional<Session> session_;
};

}  // namespace

int run_worker(const std::function<std::shared_ptr<Device>(const std::string&)>& open_device) {
  std::string code = "other";
  std::string message;
  try {
    // Never destroyed: a device that is lost may not answer its destructor, and the reader goes on to the end.
    (new Worker(open_device))->run();
  } catch (const Error& error) {
    message = error.what();
    if (error.code() == ErrorCode::device_lost) code = "lost";
    if (error.code() == ErrorCode::cache_failed) code = "cache";
    if (error.code() == ErrorCode::not_found || error.code() == ErrorCode::unsupported) code = "absent";
  } catch (const std::exception& error) {
    message = error.what();
  }
  answer("failed", {{"code", code}, {"message", message}});
  _exit(0);
}

}  // namespace hone::tuner
