#include "tuner/campaign/campaign.h"

#include <fmt/core.h>
#include <poll.h>

#include <hone/kernel_family.h>

#include <algorithm>
#include <deque>
#include <thread>

#include "tuner/campaign/lane.h"
#include "tuner/campaign/problem_text.h"
#include "tuner/command_error.h"
#include "tuner/quantities.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

/// How long to wait for something to read before clocks and stop tokens are looked at again.
constexpr milliseconds kTick{50};

/// Devices of one identity, and the problems that they share.
struct Group {
  std::string identity;
  std::vector<std::size_t> lanes;
  std::vector<std::size_t> items = {};  ///< indices into CampaignResult::items
  std::deque<std::size_t> pending = {};  ///< of items, in their order
  std::deque<std::vector<std::size_t>> lines = {};  ///< items of each line whose winners are not shared yet
  bool is_looked_up = false;
};

class Campaign {
 public:
  Campaign(std::span<const WeightedProblem> problems, const CampaignOptions& options, CampaignObserver& observer)
      : problems_(problems), options_(options), observer_(observer), start_(options.now()) {
    for (const std::string& device : options.devices) lanes_.emplace_back(device, open_order(device), options);
    result_.devices.resize(lanes_.size());
    ready_.resize(lanes_.size());
  }

  CampaignResult run() {
    while (!is_over()) {
      wait();
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
        for (const LaneEvent& event : lanes_[lane].look()) take(lane, event);
      pass_on_stop();
      for (Group& group : groups_) dispatch(group);
    }
    conclude();
    return std::move(result_);
  }

 private:
  Json open_order(const std::string& device) const {
    Json system_caches = Json::array();
    for (const auto& path : options_.session.system_caches) system_caches.push_back(path.string());
    return {{"device", device},
            {"cache", options_.session.cache_path.string()},
            {"max_bytes", options_.session.cache_max_bytes},
            {"system_caches", std::move(system_caches)},
            {"load_binaries", options_.session.load_binaries},
            {"compiler", options_.compiler},
            {"cores", std::thread::hardware_concurrency() / options_.devices.size()}};
  }

  bool is_over() const {
    const auto is_busy = [](const Lane& lane) { return !lane.is_gone() && !lane.is_idle(); };
    if (std::any_of(lanes_.begin(), lanes_.end(), is_busy)) return is_ending_ && options_.now() > give_up_at_;
    return is_ending_ || std::all_of(groups_.begin(), groups_.end(), [&](const Group& group) {
             return is_left(group) ||
                    (group.is_looked_up && group.pending.empty() && next_line(group) == group.lines.end());
           });
  }

  /// Whether no device of the group is there any more.
  bool is_left(const Group& group) const {
    return std::all_of(group.lanes.begin(), group.lanes.end(),
                       [&](std::size_t lane) { return lanes_[lane].is_gone(); });
  }

  void wait() const {
    std::vector<pollfd> descriptors;
    for (const Lane& lane : lanes_)
      if (!lane.is_gone()) descriptors.push_back({.fd = lane.descriptor(), .events = POLLIN, .revents = 0});
    poll(descriptors.data(), descriptors.size(), static_cast<int>(kTick.count()));
  }

  void take(std::size_t lane, const LaneEvent& event) {
    switch (event.kind) {
      case LaneEvent::Kind::ready:
        return welcome(lane, event.body);
      case LaneEvent::Kind::progress:
        if (lanes_[lane].job()) observer_.progressed(lane, progress_from_json(event.body));
        return;
      case LaneEvent::Kind::done:
        return finish_job(lane, event.body);
      case LaneEvent::Kind::job_failed:
        return fail_job(lane, event.message);
      case LaneEvent::Kind::cache_failed:
        result_.cache_failure = event.message;
        return end();
      case LaneEvent::Kind::lost:
        return lose(lane, event.message);
    }
  }

  void welcome(std::size_t lane, const Json& facts) {
    ready_[lane] = true;
    CampaignDevice& device = result_.devices[lane];
    device = {.name = lanes_[lane].device(),
              .label = facts.at("name"),
              .identity = device_identity(facts.at("kind").get<std::string>(), facts.at("identity").get<std::string>()),
              .free_memory_bytes = facts.at("free_memory_bytes"),
              .peak_gbps = facts.at("peak_gbps")};
    if (const std::string seen = facts.at("seen"); !seen.empty())
      observer_.warned(fmt::format("{} is not undisturbed: {}; its winners may be wrong", device.name, seen));
    if (std::find(ready_.begin(), ready_.end(), false) != ready_.end()) return;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const auto same = std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) {
        return group.identity == result_.devices[i].identity;
      });
      if (same != groups_.end()) {
        same->lanes.push_back(i);
      } else {
        groups_.push_back({.identity = result_.devices[i].identity, .lanes = {i}});
      }
    }
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      Json problems = Json::array();
      for (const WeightedProblem& weighted : problems_)
        if (is_for(weighted, groups_[group])) problems.push_back(to_json(weighted.problem));
      lanes_[groups_[group].lanes.front()].give({.kind = Job::Kind::look_up,
                                                 .order = std::move(problems),
                                                 .target = group,
                                                 .problem = problems_.front().problem});
    }
  }

  static bool is_for(const WeightedProblem& weighted, const Group& group) {
    return weighted.identity.empty() || weighted.identity == group.identity;
  }

  /// Why no device of the group has room for the problem; "" where one has, or does not tell.
  std::string refuse_for_memory(const Group& group, const Problem& problem) const {
    const auto has_less = [&](std::size_t a, std::size_t b) {
      return result_.devices[a].free_memory_bytes < result_.devices[b].free_memory_bytes;
    };
    const CampaignDevice& device =
        result_.devices[*std::max_element(group.lanes.begin(), group.lanes.end(), has_less)];
    const std::int64_t needed = problem.family->bytes_moved(problem);
    if (device.free_memory_bytes == 0 || needed <= device.free_memory_bytes) return "";
    return fmt::format("takes {}, but {} has {} of free memory; give smaller sizes, or free memory",
                       format_bytes(needed), device.name, format_bytes(device.free_memory_bytes));
  }

  /// Ends those that are next and fit no device.
  void skip_oversized(Group& group, std::size_t lane) {
    while (!group.pending.empty()) {
      CampaignItem& item = result_.items[group.pending.front()];
      item.reason = refuse_for_memory(group, item.problem);
      if (item.reason.empty()) return;
      item.outcome = Outcome::failed;
      item.device = lane;
      group.pending.pop_front();
      observer_.finished(item, lane);
    }
  }

  void finish_job(std::size_t lane, const Json& body) {
    const Job job = lanes_[lane].take_job();
    if (job.kind == Job::Kind::look_up) return plan(groups_[job.target], lane, body);
    if (job.kind == Job::Kind::share) return finish_line(lane, job, body);
    CampaignItem item = item_from_json(body);
    item.device = lane;
    item.died = job.died;
    result_.items[job.target] = item;
    if (!item.disturbance.empty() && !has_warned_) {
      has_warned_ = true;
      observer_.warned(fmt::format("{}: samples were thrown away: {}", result_.devices[lane].name, item.disturbance));
    }
    observer_.finished(item, lane);
  }

  void fail_job(std::size_t lane, const std::string& message) {
    const Job job = lanes_[lane].take_job();
    if (job.kind == Job::Kind::share) {
      LineResult line{.first = job.problem, .device = lane, .failure = message};
      result_.lines.push_back(line);
      return observer_.shared(line, lane);
    }
    CampaignItem& item = result_.items[job.target];
    item.device = lane;
    item.outcome = Outcome::failed;
    item.reason = message;
    item.died = job.died;
    observer_.finished(item, lane);
  }

  /// What a lost device was at goes back to the others of its kind.
  void lose(std::size_t lane, const std::string& message) {
    if (!ready_[lane]) throw CommandError(ExitCode::device, message);
    result_.device_failure = message;
    observer_.warned(fmt::format("{} is lost: {}", result_.devices[lane].name, message));
    if (!lanes_[lane].job()) return;
    const Job job = lanes_[lane].take_job();
    for (Group& group : groups_) {
      if (std::find(group.lanes.begin(), group.lanes.end(), lane) == group.lanes.end()) continue;
      if (job.kind == Job::Kind::tune) group.pending.push_front(job.target);
    }
  }

  void plan(Group& group, std::size_t lane, const Json& found) {
    std::size_t kept = 0;
    std::size_t place = 0;
    for (const WeightedProblem& weighted : problems_) {
      if (!is_for(weighted, group)) continue;
      CampaignItem item = item_from_json(found.at(place++));
      if (options_.again || (item.is_stale && weighted.again_when_stale))
        item = {.problem = weighted.problem, .measured_problem = weighted.problem};
      item.weight = weighted.weight;
      item.device = lane;
      group.items.push_back(result_.items.size());
      if (item.outcome == Outcome::kept) {
        ++kept;
        observer_.finished(item, lane);
      } else {
        group.pending.push_back(result_.items.size());
      }
      result_.items.push_back(std::move(item));
    }
    group.is_looked_up = true;
    if (options_.most_regret > 0) list_lines(group);
    kept_ += kept;
    if (std::all_of(groups_.begin(), groups_.end(), [](const Group& each) { return each.is_looked_up; }))
      observer_.planned(result_.devices, result_.items.size() - kept_, kept_);
  }

  void list_lines(Group& group) const {
    for (const std::size_t item : group.items) {
      const Problem& problem = result_.items[item].problem;
      const auto same = std::find_if(group.lines.begin(), group.lines.end(), [&](const auto& line) {
        return same_line(result_.items[line.front()].problem, problem);
      });
      if (same != group.lines.end()) {
        same->push_back(item);
      } else {
        group.lines.push_back({item});
      }
    }
    for (auto& line : group.lines)
      std::sort(line.begin(), line.end(), [&](std::size_t a, std::size_t b) {
        return result_.items[a].problem.extents < result_.items[b].problem.extents;
      });
  }

  void pass_on_stop() {
    if (!options_.stop.stop_requested() || is_ending_) return;
    result_.interrupted = true;
    end();
  }

  /// Lets what runs end early, for a while.
  void end() {
    if (is_ending_) return;
    is_ending_ = true;
    give_up_at_ = options_.now() + options_.patience;
    for (Lane& lane : lanes_) lane.stop();
  }

  void dispatch(Group& group) {
    if (!group.is_looked_up) return;
    for (const std::size_t lane : group.lanes) {
      if (is_ending_ || !lanes_[lane].is_idle()) continue;
      if (const auto line = next_line(group); line != group.lines.end()) {
        const std::vector<std::size_t> items = *line;
        group.lines.erase(line);
        if (left() > milliseconds::zero()) dispatch_sharing(group, items, lane);
        else leave_as_it_is(items, lane);
      } else if (!group.pending.empty()) {
        dispatch_tuning(group, lane);
      }
    }
  }

  /// Of the total budget.
  milliseconds left() const {
    if (!options_.total_budget) return milliseconds::max();
    return *options_.total_budget - std::chrono::duration_cast<milliseconds>(options_.now() - start_);
  }

  void leave_as_it_is(const std::vector<std::size_t>& items, std::size_t lane) {
    const auto is_new = [&](std::size_t item) { return result_.items[item].outcome == Outcome::tuned; };
    if (std::none_of(items.begin(), items.end(), is_new)) return;
    const LineResult line{.first = result_.items[items.front()].problem,
                          .device = lane,
                          .sizes = items.size(),
                          .failure = "the total budget was spent"};
    result_.lines.push_back(line);
    observer_.shared(line, lane);
  }

  void dispatch_tuning(Group& group, std::size_t lane) {
    const milliseconds budget = std::min(options_.budget, left());
    result_.out_of_budget = budget <= milliseconds::zero();
    if (result_.out_of_budget) {
      // Whatever else runs ends by its own budget.
      group.pending.clear();
      group.lines.clear();
      return;
    }
    skip_oversized(group, lane);
    if (group.pending.empty()) return;
    const std::size_t target = group.pending.front();
    group.pending.pop_front();
    const CampaignItem& item = result_.items[target];
    Json order{{"problem", to_json(item.problem)},
               {"weight", item.weight},
               {"budget_ms", budget.count()},
               {"exhaustive", options_.exhaustive},
               {"warm", options_.inputs == InputState::warm}};
    name_next(group, order);
    observer_.started(lane, item.problem);
    lanes_[lane].give({.kind = Job::Kind::tune, .order = std::move(order), .target = target, .problem = item.problem});
  }

  /// A line whose sizes are all tuned, by this campaign or an earlier one.
  std::deque<std::vector<std::size_t>>::const_iterator next_line(const Group& group) const {
    return std::find_if(group.lines.begin(), group.lines.end(), [&](const auto& line) {
      const auto count = [&](Outcome outcome) {
        return std::count_if(line.begin(), line.end(),
                             [&](std::size_t item) { return result_.items[item].outcome == outcome; });
      };
      return count(Outcome::not_reached) == 0 && count(Outcome::tuned) + count(Outcome::kept) > 1;
    });
  }

  void dispatch_sharing(const Group& group, const std::vector<std::size_t>& line, std::size_t lane) {
    Json problems = Json::array();
    Json may_change = Json::array();
    for (const std::size_t item : line) {
      const Outcome outcome = result_.items[item].outcome;
      if (outcome != Outcome::tuned && outcome != Outcome::kept) continue;
      problems.push_back(to_json(result_.items[item].problem));
      may_change.push_back(outcome == Outcome::tuned);
    }
    const Problem& first = result_.items[line.front()].problem;
    Json order{{"problems", std::move(problems)},
               {"may_change", std::move(may_change)},
               {"most_regret", options_.most_regret},
               {"budget_ms", options_.budget.count()},
               {"warm", options_.inputs == InputState::warm}};
    name_next(group, order);
    observer_.sharing(lane, first);
    lanes_[lane].give({.kind = Job::Kind::share, .order = std::move(order), .problem = first});
  }

  /// What will be tuned after the order, so that it is compiled meanwhile.
  void name_next(const Group& group, Json& order) const {
    if (!group.pending.empty()) order["next"] = to_json(result_.items[group.pending.front()].problem);
  }

  void finish_line(std::size_t lane, const Job&, const Json& body) {
    LineResult line = line_from_json(body.at("line"));
    if (line.winners == 0 && line.failure.empty()) return;  // it was shared before
    line.device = lane;
    for (const Json& json : body.at("changed")) {
      const CampaignItem changed = item_from_json(json);
      for (CampaignItem& item : result_.items) {
        const bool is_meant = same_line(item.problem, changed.problem) &&
                              item.problem.extents == changed.problem.extents &&
                              result_.devices[item.device].identity == result_.devices[lane].identity;
        if (!is_meant) continue;
        item.candidate = changed.candidate;
        item.median_us = changed.median_us;
      }
    }
    result_.lines.push_back(line);
    observer_.shared(line, lane);
  }

  void conclude() {
    // A job that did not end in time: its worker is killed with its lane.
    for (Lane& lane : lanes_)
      if (lane.job() && lane.job()->kind == Job::Kind::tune)
        result_.items[lane.job()->target].outcome = Outcome::interrupted;
    result_.interrupted = result_.interrupted &&
                          std::any_of(result_.items.begin(), result_.items.end(), [](const CampaignItem& item) {
                            return item.outcome == Outcome::interrupted || item.outcome == Outcome::not_reached;
                          });
  }

  const std::span<const WeightedProblem> problems_;
  const CampaignOptions& options_;
  CampaignObserver& observer_;
  const std::chrono::steady_clock::time_point start_;
  std::deque<Lane> lanes_;
  std::vector<bool> ready_;  ///< lanes whose device was opened
  std::vector<Group> groups_;
  CampaignResult result_;
  std::size_t kept_ = 0;
  bool is_ending_ = false;
  bool has_warned_ = false;
  std::chrono::steady_clock::time_point give_up_at_;
};

}  // namespace

std::vector<WeightedProblem> one_per_size_class(std::span<const WeightedProblem> problems) {
  std::vector<WeightedProblem> kept;
  for (const WeightedProblem& weighted : problems) {
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const WeightedProblem& earlier) {
      return earlier.identity == weighted.identity && same_line(earlier.problem, weighted.problem) &&
             size_ranges(earlier.problem.extents) == size_ranges(weighted.problem.extents);
    });
    if (same == kept.end()) kept.push_back(weighted);
  }
  return kept;
}

CampaignResult run_campaign(std::span<const WeightedProblem> problems, const CampaignOptions& options,
                            CampaignObserver& observer) {
  return Campaign(problems, options, observer).run();
}

}  // namespace hone::tuner
