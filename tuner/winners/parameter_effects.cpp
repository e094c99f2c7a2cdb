#include "tuner/winners/parameter_effects.h"

#include <algorithm>
#include <functional>
#include <limits>
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

/// So many reasons are given for one value at most.
constexpr std::size_t kMostReasons = 3;

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

/// The values of a policy; nullopt for a parameter that it does not have.
using PolicyValues = std::vector<std::optional<std::int32_t>>;

PolicyValues values_of(const ParameterSpace& space, const Policy& policy) {
  PolicyValues values(space.parameters().size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (space.exists(i, policy)) values[i] = policy[static_cast<int>(i)];
  return values;
}

/// A policy that the family leaves out.
struct LeftOut {
  PolicyValues values;
  Reason reason;
};

/// An Offer says what the family makes of all its policies with one value of a parameter.
struct Offer {
  bool has_policy = false;  ///< one of them is neither invalid nor pruned
  int distance = std::numeric_limits<int>::max();  ///< from the winner: parameters that both have with other values
  std::vector<LeftOut> nearest = {};               ///< those at the smallest distance

  void add(const PolicyValues& values, const Reason& reason, int from_winner) {
    if (reason.empty()) has_policy = true;
    if (reason.empty() || from_winner > distance) return;
    if (from_winner < distance) nearest.clear();
    distance = from_winner;
    nearest.push_back({values, reason});
  }

  /// True if all of the nearest with one's value of a parameter are left out for one reason, and there are others: then
  /// the reason tells of that value.
  bool is_blamed(std::size_t parameter, const LeftOut& one) const {
    const auto has_value = [&](const LeftOut& other) { return other.values[parameter] == one.values[parameter]; };
    return !std::ranges::all_of(nearest, has_value) && std::ranges::all_of(nearest, [&](const LeftOut& other) {
      return !has_value(other) || other.reason.is_like(one.reason);
    });
  }

  /// The reasons that tell of the value itself, not of a parameter that the winner lacks; all where that leaves none.
  ReasonCounts reasons(const PolicyValues& winning) const {
    ReasonCounts all, telling;
    for (const LeftOut& one : nearest) {
      bool is_telling = true;
      for (std::size_t i = 0; i < winning.size(); ++i)
        if (!winning[i] && one.values[i] && is_blamed(i, one)) is_telling = false;
      all.add("rejected", one.reason);
      if (is_telling) telling.add("rejected", one.reason);
    }
    return telling.most_frequent_first().empty() ? all : telling;
  }
};

/// The reasons against every policy with a value, by the parameter's name and the spelled value; none for a value with
/// which some policy is offered. Whole policies are asked about: one value of the winner alone, exchanged, may make no
/// policy of the space, since other parameters exist only beside certain values.
std::map<std::pair<std::string_view, std::string>, ReasonCounts> reasons_of_family(const cache::StoredWinner& stored,
                                                                                   const Problem& problem) {
  const ParameterSpace& space = problem.family->space();
  const ProblemClass problem_class(problem);
  const DeviceFacts facts = stored_facts(stored.key.device);
  const std::vector<Policy> policies = space.all();
  const PolicyValues winning =
      values_of(space, space.parse(stored.winner.candidate.policy).value_or(policies.front()));
  std::map<std::pair<std::size_t, std::int32_t>, Offer> offers;
  for (const Policy& policy : policies) {
    Reason reason = problem.family->is_valid(problem_class, policy, facts);
    if (reason.empty()) reason = problem.family->prune(problem_class, policy, facts);
    const PolicyValues values = values_of(space, policy);
    int distance = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      distance += values[i] && winning[i] && *values[i] != *winning[i] ? 1 : 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i]) offers[{i, *values[i]}].add(values, reason, distance);
  }
  std::map<std::pair<std::string_view, std::string>, ReasonCounts> reasons;
  for (const auto& [value, offer] : offers) {
    const Parameter& parameter = space.parameters()[value.first];
    if (!offer.has_policy)
      reasons.emplace(std::pair(parameter.name, parameter.spell(value.second)), offer.reasons(winning));
  }
  return reasons;
}

/// The words of up to `most` reasons, the most frequent first.
std::string words_of(const ReasonCounts& reasons, std::size_t most) {
  std::string words;
  for (const ReasonCount& reason : reasons.most_frequent_first()) {
    if (most-- == 0) break;
    words.append(words.empty() ? "" : "; or ").append(reason.reason.general_text());
  }
  return words;
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
  const auto by_family =
      problem ? reasons_of_family(stored, *problem) : decltype(reasons_of_family(stored, *problem))();
  std::vector<UntriedValues> untried;
  for (const auto& [name, values] : all_values(tuning, problem)) {
    for (const std::string& value : values) {
      if (const auto tried = is_tried.find({name, value}); tried != is_tried.end() && tried->second) continue;
      const auto left_out = by_family.find({name, value});
      const auto why = reasons.find({name, value});
      std::string reason;
      if (left_out != by_family.end()) reason = words_of(left_out->second, kMostReasons);
      else if (why != reasons.end()) reason = words_of(why->second, 1);
      if (untried.empty() || untried.back().parameter != name || untried.back().reason != reason)
        untried.push_back({.parameter = name, .values = {}, .reason = reason});
      untried.back().values.push_back(value);
    }
  }
  return untried;
}

}  // namespace hone::tuner
