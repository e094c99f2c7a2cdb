#include "tuner/winners/parameter_effects.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <hone/kernel_family.h>

#include "tuner/problems/problem_text.h"
#include "tuner/text/reasons.h"
#include "tuner/winners/stored_facts.h"

namespace hone::tuner {
namespace {

using cache::TrialRecord;

/// Calls visit(name, value) for "name=value name=value".
template <class Visit>
void each_parameter(std::string_view policy, Visit visit) {
  while (!policy.empty()) {
    const std::string_view item = policy.substr(0, policy.find(' '));
    policy.remove_prefix(std::min(policy.size(), item.size() + 1));
    if (const std::size_t equals = item.find('='); equals != std::string_view::npos)
      visit(item.substr(0, equals), item.substr(equals + 1));
  }
}

/// The entry whose `member` is `key`; made where there is none.
template <class Entry>
Entry& entry_of(std::vector<Entry>& entries, std::string_view Entry::*member, std::string_view key) {
  const auto known = std::ranges::find(entries, key, member);
  if (known != entries.end()) return *known;
  Entry entry;
  entry.*member = key;
  return entries.emplace_back(std::move(entry));
}

using Values = std::vector<std::string>;

/// The values of each parameter, in the order of the space, else of the trials.
std::vector<std::pair<std::string_view, Values>> all_values(const cache::TuningRecord& tuning,
                                                            const std::optional<Problem>& problem) {
  std::vector<std::pair<std::string_view, Values>> all;
  if (problem) {
    for (const Parameter& parameter : problem->family->space().parameters()) {
      Values values;
      for (const std::int32_t value : parameter.values) values.push_back(parameter.spell(value));
      all.emplace_back(parameter.name, std::move(values));
    }
    return all;
  }
  for (const TrialRecord& trial : tuning.trials)
    each_parameter(trial.candidate.policy, [&](std::string_view name, std::string_view value) {
      auto known = std::ranges::find(all, name, &std::pair<std::string_view, Values>::first);
      if (known == all.end()) known = all.insert(all.end(), {name, {}});
      if (std::ranges::find(known->second, value) == known->second.end()) known->second.emplace_back(value);
    });
  return all;
}

/// Why the family leaves out the winner's policy with another value of one parameter; "" where it does not.
std::string why_left_out(const cache::StoredWinner& stored, const Problem& problem, std::string_view name,
                         std::string_view value) {
  const ParameterSpace& space = problem.family->space();
  const std::optional<Policy> winner = space.parse(stored.winner.candidate.policy);
  if (!winner) return "";
  Policy changed;
  for (std::size_t i = 0; i < space.parameters().size(); ++i) {
    const Parameter& parameter = space.parameters()[i];
    std::int32_t taken = (*winner)[static_cast<int>(i)];
    if (parameter.name == name)
      for (const std::int32_t each : parameter.values)
        if (parameter.spell(each) == value) taken = each;
    changed.push_back(taken);
  }
  for (std::size_t i = 0; i < space.parameters().size(); ++i)
    if (space.parameters()[i].name == name && !space.exists(i, changed)) return "";
  const ProblemClass problem_class(problem);
  const DeviceFacts facts = stored_facts(stored.key.device);
  const Reason invalid = problem.family->is_valid(problem_class, changed, facts);
  return (invalid.empty() ? problem.family->prune(problem_class, changed, facts) : invalid).general_text();
}

}  // namespace

std::vector<ParameterEffect> parameter_effects(const cache::TuningRecord& tuning) {
  std::vector<ParameterEffect> effects;
  for (const TrialRecord& trial : tuning.trials) {
    if (trial.verdict != "ok" || trial.median_us <= 0) continue;
    each_parameter(trial.candidate.policy, [&](std::string_view name, std::string_view value) {
      ValueEffect& effect =
          entry_of(entry_of(effects, &ParameterEffect::name, name).values, &ValueEffect::value, value);
      if (effect.best == nullptr || trial.median_us < effect.best->median_us) effect.best = &trial;
    });
  }
  for (ParameterEffect& effect : effects)
    std::ranges::stable_sort(effect.values, {}, [](const ValueEffect& value) { return value.best->median_us; });
  std::ranges::stable_sort(effects, std::greater{}, &ParameterEffect::worst);
  return effects;
}

std::vector<UntriedValues> untried_values(const cache::StoredWinner& stored, const cache::TuningRecord& tuning) {
  using Value = std::pair<std::string_view, std::string_view>;
  std::map<Value, bool> is_tried;
  std::map<Value, ReasonCounts> reasons;
  for (const TrialRecord& trial : tuning.trials) {
    const bool is_measured = trial.verdict == "ok";
    const CountedReason why = CountedReason::parse(trial.reason);
    // Why one policy out of many is invalid or pruned may lie in any of its values.
    const bool is_telling = !is_measured && (why.policies == 1 || why.reason.code >= ReasonCode::not_compiled_stopped);
    each_parameter(trial.candidate.policy, [&](std::string_view name, std::string_view value) {
      is_tried[{name, value}] |= is_measured;
      if (is_telling) reasons[{name, value}].add(trial.verdict, why.reason, why.policies);
    });
  }
  const std::optional<Problem> problem = tuner::problem_of(stored.key.problem, stored.winner.tuned_extents);
  std::vector<UntriedValues> untried;
  for (const auto& [name, values] : all_values(tuning, problem)) {
    for (const std::string& value : values) {
      if (const auto tried = is_tried.find({name, value}); tried != is_tried.end() && tried->second) continue;
      const auto why = reasons.find({name, value});
      std::string reason = problem ? why_left_out(stored, *problem, name, value) : "";
      if (reason.empty() && why != reasons.end())
        reason = why->second.most_frequent_first().front().reason.general_text();
      if (untried.empty() || untried.back().parameter != name || untried.back().reason != reason)
        untried.push_back({.parameter = name, .values = {}, .reason = reason});
      untried.back().values.push_back(value);
    }
  }
  return untried;
}

}  // namespace hone::tuner
