#include "tuner/campaign/campaign.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "tuner/campaign/campaign_plan.h"
#include "tuner/campaign/lane.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

using std::chrono::milliseconds;

/// How long to wait for something to read before clocks and stop tokens are looked at again.
constexpr milliseconds kTick{50};

/// Carries the plan out: gives its steps to the lanes, and tells it and the observer what came of them.
class Campaign {
 public:
  Campaign(std::span<const WeightedProblem> problems, const CampaignOptions& options, CampaignObserver& observer)
      : options_(options), observer_(observer), start_(options.now()), plan_(problems, options) {
    for (const std::string& device : options.devices) lanes_.emplace_back(open_request(device), options);
    opened_.resize(lanes_.size());
    given_at_.resize(lanes_.size());
  }

  CampaignResult run() {
    while (!is_over()) {
      wait();
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
        for (LaneEvent& event : lanes_[lane].look())
          std::visit([&](auto& each) { take(lane, std::move(each)); }, event);
      pass_on_stop();
      if (!plan_.groups().empty())
        for (std::size_t lane = 0; lane < lanes_.size(); ++lane) give_work(lane);
    }
    conclude();
    return std::move(plan_.result());
  }

 private:
  OpenRequest open_request(const std::string& device) const {
    return {.device = device,
            .compiler = options_.compiler,
            .cores = std::thread::hardware_concurrency() / static_cast<unsigned>(options_.devices.size()),
            .cache_path = options_.session.cache_path,
            .max_bytes = options_.session.cache_max_bytes,
            .system_caches = options_.session.system_caches,
            .load_binaries = options_.session.load_binaries,
            .objective = options_.session.objective};
  }

  bool is_over() const {
    const auto is_busy = [](const Lane& lane) { return !lane.is_gone() && !lane.is_idle(); };
    if (std::any_of(lanes_.begin(), lanes_.end(), is_busy)) return is_ending_ && options_.now() > give_up_at_;
    const auto is_left = [&](const DeviceGroup& group) {
      return std::all_of(group.devices.begin(), group.devices.end(),
                         [&](std::size_t lane) { return lanes_[lane].is_gone(); });
    };
    return is_ending_ || std::all_of(plan_.groups().begin(), plan_.groups().end(),
                                     [&](const DeviceGroup& group) { return is_left(group) || plan_.is_done(group); });
  }

  void wait() const {
    std::vector<pollfd> descriptors;
    for (const Lane& lane : lanes_)
      if (!lane.is_gone()) descriptors.push_back({.fd = lane.descriptor(), .events = POLLIN, .revents = 0});
    poll(descriptors.data(), descriptors.size(), static_cast<int>(kTick.count()));
  }

  void take(std::size_t lane, ReadyAnswer answer) {
    opened_[lane] = CampaignDevice{.name = lanes_[lane].device(),
                                   .label = answer.name,
                                   .identity = device_identity(answer.kind, answer.identity),
                                   .free_memory_bytes = answer.free_memory_bytes,
                                   .peak_gbps = answer.peak_gbps};
    if (!answer.seen.empty())
      observer_.warned(
          fmt::format("{} is not undisturbed: {}; its winners may be wrong", lanes_[lane].device(), answer.seen));
    std::vector<CampaignDevice> devices;
    for (const std::optional<CampaignDevice>& device : opened_)
      if (device) devices.push_back(*device);
    if (devices.size() < opened_.size()) return;
    plan_.set_devices(std::move(devices));
    for (std::size_t group = 0; group < plan_.groups().size(); ++group)
      lanes_[plan_.groups()[group].devices.front()].give(
          {.request = LookUpRequest{plan_.problems_of(plan_.groups()[group])}, .target = group});
  }

  void take(std::size_t lane, ProgressAnswer answer) {
    if (lanes_[lane].job()) observer_.progressed(lane, answer.progress);
  }

  void take(std::size_t lane, LookedUpAnswer answer) {
    const std::size_t group = lanes_[lane].take_job().target;
    plan_.take_looked_up(group, lane, std::move(answer.items));
    for (const std::size_t index : plan_.groups()[group].items) {
      const CampaignItem& item = result().items[index];
      if (item.outcome != Outcome::kept) continue;
      ++kept_;
      observer_.finished(item, lane);
    }
    if (plan_.are_all_looked_up()) observer_.planned(result().devices, result().items.size() - kept_, kept_);
  }

  void take(std::size_t lane, TunedAnswer answer) {
    Job job = lanes_[lane].take_job();
    CampaignTimes& times = result().times;
    times.waiting_for_compiler_ms += answer.item.compile_ms;
    times.measuring_ms += answer.item.measure_ms - answer.item.verify_ms;
    times.verifying_ms += answer.item.verify_ms;
    times.hung_ms += job.lost_ms;
    times.storing_ms +=
        std::max(0.0, worked_ms(lane) - job.lost_ms - answer.item.compile_ms - answer.item.measure_ms);
    const CampaignItem& item = plan_.take_tuned(job.target, lane, std::move(answer.item), std::move(job.died));
    if (!item.disturbance.empty() && !has_warned_) {
      has_warned_ = true;
      observer_.warned(fmt::format("{}: samples were thrown away: {}", result().devices[lane].name, item.disturbance));
    }
    observer_.finished(item, lane);
  }

  void take(std::size_t lane, ConsolidatedAnswer answer) {
    const double lost_ms = lanes_[lane].take_job().lost_ms;
    result().times.hung_ms += lost_ms;
    result().times.comparing_sizes_ms += worked_ms(lane) - lost_ms;
    if (const SweepResult* sweep = plan_.take_consolidated(lane, answer)) observer_.consolidated(*sweep, lane);
  }

  void take(std::size_t lane, JobFailed failed) {
    Job job = lanes_[lane].take_job();
    result().times.failed_ms += worked_ms(lane);
    if (const auto* consolidate = std::get_if<ConsolidateRequest>(&job.request))
      observer_.consolidated(plan_.take_failed_sweep(lane, *consolidate, failed.message), lane);
    else
      observer_.finished(plan_.take_failed(job.target, lane, failed.message, std::move(job.died)), lane);
  }

  /// The work of a lost device goes back to the others of its kind.
  void take(std::size_t lane, DeviceGone gone) {
    if (!opened_[lane]) throw CommandError(ExitCode::device, gone.message);
    result().device_failure = gone.message;
    observer_.warned(fmt::format("{} is lost: {}", opened_[lane]->name, gone.message));
    std::optional<std::size_t> item;
    if (lanes_[lane].job())
      if (const Job job = lanes_[lane].take_job(); job.is<TuneRequest>()) item = job.target;
    plan_.give_back(item, lane);
  }

  void take(std::size_t lane, FilesFailed failed) {
    (failed.is_cache ? result().cache_failure : result().file_failure) = failed.message;
    if (lanes_[lane].job()) {
      const Job job = lanes_[lane].take_job();
      result().times.failed_ms += worked_ms(lane);
      if (const auto* consolidate = std::get_if<ConsolidateRequest>(&job.request))
        observer_.consolidated(plan_.take_failed_sweep(lane, *consolidate, failed.message), lane);
      if (job.is<TuneRequest>())
        observer_.finished(failed.is_cache ? plan_.take_not_stored(job.target, lane, failed.message)
                                           : plan_.take_failed(job.target, lane, failed.message, {}),
                           lane);
    }
    end();
  }

  void pass_on_stop() {
    if (!options_.stop.stop_requested() || is_ending_) return;
    result().interrupted = true;
    end();
  }

  /// Lets what runs end early, for a while.
  void end() {
    if (is_ending_) return;
    is_ending_ = true;
    give_up_at_ = options_.now() + options_.patience;
    for (Lane& lane : lanes_) lane.stop();
  }

  void give_work(std::size_t lane) {
    while (!is_ending_ && lanes_[lane].is_idle()) {
      Step step = plan_.next_step(lane, left());
      if (auto* tune = std::get_if<TuneStep>(&step)) {
        observer_.started(lane, tune->request.problem);
        give(lane, {.request = std::move(tune->request), .target = tune->item});
      } else if (auto* consolidate = std::get_if<ConsolidateStep>(&step)) {
        observer_.consolidating(lane, consolidate->request.problems.front());
        give(lane, {.request = std::move(consolidate->request)});
      } else if (const auto* skipped = std::get_if<SkippedStep>(&step)) {
        observer_.finished(result().items[skipped->item], lane);
      } else if (std::holds_alternative<SweepLeftStep>(step)) {
        observer_.consolidated(result().sweeps.back(), lane);
      } else {
        return;
      }
    }
  }

  void give(std::size_t lane, Job job) {
    given_at_[lane] = options_.now();
    lanes_[lane].give(std::move(job));
  }

  /// The time since a lane was given its job.
  double worked_ms(std::size_t lane) const { return ms_since(given_at_[lane]); }

  double ms_since(std::chrono::steady_clock::time_point start) const {
    return std::chrono::duration<double, std::milli>(options_.now() - start).count();
  }

  /// Returns what is left of the total budget.
  milliseconds left() const {
    if (!options_.total_budget) return milliseconds::max();
    return *options_.total_budget - std::chrono::duration_cast<milliseconds>(options_.now() - start_);
  }

  void conclude() {
    CampaignTimes& times = result().times;
    const double worked_ms = times.waiting_for_compiler_ms + times.measuring_ms + times.verifying_ms +
                             times.comparing_sizes_ms + times.storing_ms + times.hung_ms + times.failed_ms;
    times.idle_ms = std::max(0.0, static_cast<double>(lanes_.size()) * ms_since(start_) - worked_ms);
    // A job that did not end in time: its worker is killed with its lane.
    for (Lane& lane : lanes_)
      if (lane.job() && lane.job()->is<TuneRequest>())
        result().items[lane.job()->target].outcome = Outcome::interrupted;
    result().interrupted =
        result().interrupted && std::any_of(result().items.begin(), result().items.end(), [](const CampaignItem& item) {
          return item.outcome == Outcome::interrupted || item.outcome == Outcome::not_reached;
        });
  }

  CampaignResult& result() { return plan_.result(); }

  const CampaignOptions& options_;
  CampaignObserver& observer_;
  const std::chrono::steady_clock::time_point start_;
  CampaignPlan plan_;
  std::deque<Lane> lanes_;
  std::vector<std::optional<CampaignDevice>> opened_;  ///< of each lane
  std::vector<std::chrono::steady_clock::time_point> given_at_;  ///< of each lane's job
  std::size_t kept_ = 0;
  bool is_ending_ = false;
  bool has_warned_ = false;
  std::chrono::steady_clock::time_point give_up_at_;
};

}  // namespace

CampaignResult run_campaign(std::span<const WeightedProblem> problems, const CampaignOptions& options,
                            CampaignObserver& observer) {
  return Campaign(problems, options, observer).run();
}

}  // namespace hone::tuner
