#include "tuner/campaign/campaign_plan.h"

#include <fmt/core.h>

#include <hone/kernel_family.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "cache/identity.h"
#include "tuner/problems/problem_text.h"
#include "tuner/text/quantities.h"

namespace hone::tuner {

using std::chrono::milliseconds;

namespace {

/// A device compiles for so many of its next problems while it measures: those of a few small sweeps, whose kernels are
/// all different, keep the compilers busy while their sizes are compared.
constexpr std::size_t kCompiledAhead = 6;

}  // namespace

bool share_winners(const std::string& identity, const std::string& other) {
  return cache::same_device({.kind = {}, .name = {}, .architecture = {}, .identity = identity},
                            {.kind = {}, .name = {}, .architecture = {}, .identity = other});
}

void CampaignPlan::set_devices(std::vector<CampaignDevice> devices) {
  result_.devices = std::move(devices);
  for (std::size_t device = 0; device < result_.devices.size(); ++device) {
    const std::string& identity = result_.devices[device].identity;
    const auto same = std::find_if(groups_.begin(), groups_.end(),
                                   [&](const DeviceGroup& group) { return share_winners(group.identity, identity); });
    if (same != groups_.end()) {
      same->devices.push_back(device);
    } else {
      groups_.push_back({.identity = identity, .devices = {device}});
    }
  }
}

bool CampaignPlan::are_all_looked_up() const {
  return std::all_of(groups_.begin(), groups_.end(), [](const DeviceGroup& group) { return group.is_looked_up; });
}

bool CampaignPlan::is_done(const DeviceGroup& group) const {
  return group.is_looked_up && group.pending.empty() && ready_sweep(group) == group.sweeps.end();
}

bool CampaignPlan::is_for(const WeightedProblem& weighted, const DeviceGroup& group) const {
  return weighted.identity.empty() || share_winners(weighted.identity, group.identity);
}

std::vector<Problem> CampaignPlan::problems_of(const DeviceGroup& group) const {
  std::vector<Problem> problems;
  for (const WeightedProblem& weighted : problems_)
    if (is_for(weighted, group)) problems.push_back(weighted.problem);
  return problems;
}

void CampaignPlan::take_looked_up(std::size_t index, std::size_t device, std::vector<CampaignItem> found) {
  DeviceGroup& group = groups_[index];
  auto next = found.begin();
  for (const WeightedProblem& weighted : problems_) {
    if (!is_for(weighted, group)) continue;
    CampaignItem item = std::move(*next++);
    if (options_.again || (item.is_stale && weighted.again_when_stale))
      item = {.problem = weighted.problem, .measured_problem = weighted.problem};
    item.weight = weighted.weight;
    item.device = device;
    group.items.push_back(result_.items.size());
    if (item.outcome != Outcome::kept) group.pending.push_back(result_.items.size());
    result_.items.push_back(std::move(item));
  }
  group.is_looked_up = true;
  std::deque<Sweep> sweeps = list_sweeps(group);
  for (std::size_t number = 0; number < sweeps.size(); ++number)
    for (const std::size_t item : sweeps[number]) group.sweep_of[item] = number;
  if (options_.most_regret > 0) group.sweeps = std::move(sweeps);
}

std::deque<CampaignPlan::Sweep> CampaignPlan::list_sweeps(const DeviceGroup& group) const {
  std::deque<Sweep> sweeps;
  const auto problem_of = [&](std::size_t item) -> const Problem& { return result_.items[item].problem; };
  for (const std::size_t item : group.items) {
    const auto same = std::find_if(sweeps.begin(), sweeps.end(), [&](const Sweep& sweep) {
      return same_sweep(problem_of(sweep.front()), problem_of(item));
    });
    if (same != sweeps.end()) {
      same->push_back(item);
    } else {
      sweeps.push_back({item});
    }
  }
  for (Sweep& sweep : sweeps)
    std::sort(sweep.begin(), sweep.end(),
              [&](std::size_t a, std::size_t b) { return problem_of(a).extents < problem_of(b).extents; });
  return sweeps;
}

/// One whose sizes are all tuned, by this campaign or an earlier one.
std::deque<CampaignPlan::Sweep>::const_iterator CampaignPlan::ready_sweep(const DeviceGroup& group) const {
  return std::find_if(group.sweeps.begin(), group.sweeps.end(), [&](const Sweep& sweep) {
    const auto count = [&](Outcome outcome) {
      return std::count_if(sweep.begin(), sweep.end(),
                           [&](std::size_t item) { return result_.items[item].outcome == outcome; });
    };
    return count(Outcome::not_reached) == 0 && count(Outcome::tuned) + count(Outcome::kept) > 1;
  });
}

bool CampaignPlan::has_new_winner(const Sweep& sweep) const {
  return std::any_of(sweep.begin(), sweep.end(),
                     [&](std::size_t item) { return result_.items[item].outcome == Outcome::tuned; });
}

DeviceGroup& CampaignPlan::group_of(std::size_t device) {
  return *std::find_if(groups_.begin(), groups_.end(), [&](const DeviceGroup& group) {
    return std::find(group.devices.begin(), group.devices.end(), device) != group.devices.end();
  });
}

/// The first one of a sweep that no other device tunes, as long as there is one: sizes of a sweep share kernels, which
/// each device compiles for itself. Then the last one of another's, which comes to it last.
std::deque<std::size_t>::const_iterator CampaignPlan::next_pending(const DeviceGroup& group,
                                                                   std::size_t device) const {
  const auto alone = std::find_if(group.pending.begin(), group.pending.end(), [&](std::size_t item) {
    const auto of = group.device_of.find(group.sweep_of.at(item));
    return of == group.device_of.end() || of->second == device;
  });
  return alone != group.pending.end() || group.pending.empty() ? alone : std::prev(group.pending.end());
}

/// The problems that the device tunes after the step: they are compiled meanwhile. Sweeps that nobody has begun become
/// its own as long as there is one for each other device.
std::vector<Problem> CampaignPlan::next_problems(DeviceGroup& group, std::size_t device) const {
  std::set<std::size_t> not_begun;
  for (const std::size_t item : group.pending)
    if (!group.device_of.contains(group.sweep_of[item])) not_begun.insert(group.sweep_of[item]);
  std::vector<Problem> problems;
  for (const std::size_t item : group.pending) {
    const std::size_t sweep = group.sweep_of[item];
    if (not_begun.size() >= group.devices.size() && not_begun.erase(sweep) > 0) group.device_of[sweep] = device;
    const auto of = group.device_of.find(sweep);
    if (of != group.device_of.end() && of->second == device) problems.push_back(result_.items[item].problem);
    if (problems.size() == kCompiledAhead) break;
  }
  if (problems.empty() && !group.pending.empty())
    problems.push_back(result_.items[*next_pending(group, device)].problem);
  return problems;
}

Step CampaignPlan::next_step(std::size_t device, milliseconds left) {
  DeviceGroup& group = group_of(device);
  if (!group.is_looked_up) return {};
  for (auto ready = ready_sweep(group); ready != group.sweeps.end(); ready = ready_sweep(group)) {
    const Sweep sweep = *ready;
    group.sweeps.erase(ready);
    if (left > milliseconds::zero()) return ConsolidateStep{consolidate_request(sweep, group, device)};
    if (!has_new_winner(sweep)) continue;
    result_.sweeps.push_back({.first = result_.items[sweep.front()].problem,
                              .device = device,
                              .sizes = sweep.size(),
                              .failure = "the total budget was spent"});
    return SweepLeftStep{};
  }
  if (group.pending.empty()) return {};
  if (left <= milliseconds::zero()) {
    // The lanes that still run end by their own budgets.
    result_.out_of_budget = true;
    group.pending.clear();
    group.sweeps.clear();
    return {};
  }
  const auto pending = next_pending(group, device);
  const std::size_t target = *pending;
  group.pending.erase(pending);
  group.device_of.try_emplace(group.sweep_of[target], device);
  CampaignItem& item = result_.items[target];
  std::vector<CampaignDevice> devices;
  for (const std::size_t each : group.devices) devices.push_back(result_.devices[each]);
  if (const std::string refusal = memory_fault(devices, item.problem); !refusal.empty()) {
    take_failed(target, device, refusal, {});
    return SkippedStep{target};
  }
  item.is_cut_off = left < options_.budget;  // until it turns out otherwise
  return TuneStep{target,
                  {.problem = item.problem,
                   .weight = item.weight,
                   .budget = std::min(options_.budget, left),
                   .exhaustive = options_.exhaustive,
                   .inputs = options_.inputs,
                   .next = next_problems(group, device)}};
}

ConsolidateRequest CampaignPlan::consolidate_request(const Sweep& sweep, DeviceGroup& group,
                                                     std::size_t device) const {
  ConsolidateRequest request{.problems = {},
                             .may_change = {},
                             .most_regret = options_.most_regret,
                             .budget = options_.budget,
                             .inputs = options_.inputs,
                             .next = next_problems(group, device)};
  for (const std::size_t item : sweep) {
    const Outcome outcome = result_.items[item].outcome;
    if (outcome != Outcome::tuned && outcome != Outcome::kept) continue;
    request.problems.push_back(result_.items[item].problem);
    request.may_change.push_back(outcome == Outcome::tuned);
  }
  return request;
}

const CampaignItem& CampaignPlan::take_tuned(std::size_t item, std::size_t device, CampaignItem tuned,
                                             std::vector<std::string> died) {
  tuned.device = device;
  tuned.died = std::move(died);
  tuned.is_cut_off = result_.items[item].is_cut_off && tuned.budget_spent &&
                     (tuned.outcome == Outcome::untuned || tuned.outcome == Outcome::failed);
  if (tuned.is_cut_off) {
    result_.out_of_budget = true;
    if (tuned.outcome == Outcome::failed) tuned.outcome = Outcome::not_reached;
  }
  return result_.items[item] = std::move(tuned);
}

const CampaignItem& CampaignPlan::take_failed(std::size_t target, std::size_t device, std::string reason,
                                              std::vector<std::string> died) {
  CampaignItem& item = result_.items[target];
  item.device = device;
  item.outcome = Outcome::failed;
  item.reason = std::move(reason);
  item.died = std::move(died);
  return item;
}

const CampaignItem& CampaignPlan::take_not_stored(std::size_t target, std::size_t device, std::string reason) {
  take_failed(target, device, std::move(reason), {});
  result_.items[target].outcome = Outcome::not_stored;
  return result_.items[target];
}

void CampaignPlan::give_back(std::optional<std::size_t> item, std::size_t device) {
  DeviceGroup& group = group_of(device);
  if (item) group.pending.push_front(*item);
  std::erase_if(group.device_of, [&](const auto& each) { return each.second == device; });
}

const SweepResult* CampaignPlan::take_consolidated(std::size_t device, const ConsolidatedAnswer& answer) {
  if (answer.sweep.winners == 0 && answer.sweep.failure.empty()) return nullptr;
  for (const CampaignItem& changed : answer.changed) {
    for (CampaignItem& item : result_.items) {
      const bool is_meant = same_sweep(item.problem, changed.problem) &&
                            item.problem.extents == changed.problem.extents &&
                            share_winners(result_.devices[item.device].identity, result_.devices[device].identity);
      if (!is_meant) continue;
      item.candidate = changed.candidate;
      item.median_us = changed.median_us;
    }
  }
  SweepResult& sweep = result_.sweeps.emplace_back(answer.sweep);
  sweep.device = device;
  return &sweep;
}

const SweepResult& CampaignPlan::take_failed_sweep(std::size_t device, const ConsolidateRequest& request,
                                                   std::string failure) {
  return result_.sweeps.emplace_back(
      SweepResult{.first = request.problems.front(), .device = device, .failure = std::move(failure)});
}

std::vector<WeightedProblem> one_per_size_class(std::span<const WeightedProblem> problems) {
  std::vector<WeightedProblem> kept;
  for (const WeightedProblem& weighted : problems) {
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const WeightedProblem& earlier) {
      return share_winners(earlier.identity, weighted.identity) && same_sweep(earlier.problem, weighted.problem) &&
             size_ranges(earlier.problem.extents) == size_ranges(weighted.problem.extents);
    });
    if (same == kept.end()) kept.push_back(weighted);
  }
  return kept;
}

std::string memory_fault(std::span<const CampaignDevice> devices, const Problem& problem) {
  const CampaignDevice& device = *std::max_element(
      devices.begin(), devices.end(),
      [](const CampaignDevice& a, const CampaignDevice& b) { return a.free_memory_bytes < b.free_memory_bytes; });
  const std::int64_t needed = problem.family->bytes_moved(problem);
  if (device.free_memory_bytes == 0 || needed <= device.free_memory_bytes) return "";
  return fmt::format("takes {}, but {} has {} of free memory; give smaller sizes, or free memory", format_bytes(needed),
                     device.name, format_bytes(device.free_memory_bytes));
}

}  // namespace hone::tuner
