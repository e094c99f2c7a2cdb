#include "runtime/choose/search_order.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hone {

namespace {

/// Relatives of the leader that are expected to take longer than this many times its time are not measured. What is
/// known of one name says little of the next, for names have no order, and what is known of one grid little of another,
/// for waves come whole: argmaxima of 2^21 i8 took blocks of 512 threads 4.08 µs in 264 of them and 4.01 in 132, where
/// 4.59 were expected (H200, CUDA 13.0, 2026-11).
constexpr double kMostBehind = 1.05;
constexpr double kMostBehindWithoutOrder = 1.3;

/// The fastest of a named value has its relatives measured if it is no further behind the leader.
constexpr double kNearTheLeader = 1.08;

bool is_an_octave_apart(std::int32_t a, std::int32_t b) {
  const auto place = [](std::int32_t value) { return std::log2(std::max<double>(value, 0.5)); };
  return std::abs(place(a) - place(b)) >= 1;
}

/// If an ordinal parameter has more values than this, those that are closer together than an octave behave too much
/// alike for each to be measured whatever is expected of it.
constexpr std::size_t kManyValues = 6;

bool has_close_values(const Parameter& parameter) {
  return parameter.kind() == ParameterKind::ordinal && parameter.values.size() > kManyValues;
}

/// True if one value of such a parameter is next to another, or one of those beyond that are an octave apart.
bool is_representative(const Parameter& parameter, std::int32_t value, std::int32_t of) {
  std::vector<std::int32_t> between;  // from next to `of` up to `value`
  for (const std::int32_t each : parameter.values)
    if (std::min(of, value) <= each && each <= std::max(of, value) && each != of) between.push_back(each);
  std::sort(between.begin(), between.end());
  if (value < of) std::reverse(between.begin(), between.end());
  std::int32_t last = between.front();
  for (const std::int32_t each : between)
    if (is_an_octave_apart(each, last)) last = each;
  return last == value;
}

/// Each once.
std::vector<Policy> policies_of(const std::vector<Candidate>& candidates) {
  std::vector<Policy> policies;
  for (const Candidate& candidate : candidates)
    if (std::find(policies.begin(), policies.end(), candidate.policy) == policies.end())
      policies.push_back(candidate.policy);
  return policies;
}

}  // namespace

Pruning pruning_of(const TuningOptions& options) {
  return options.exhaustive || !options.only.empty() ? Pruning::off : Pruning::on;
}

SearchOrder::SearchOrder(const DeviceFacts& facts, const Problem& problem, const TuningOptions& options,
                         const DeviceLimits& limits)
    : problem_(problem), options_(options), surrogate_(problem.family->space(), facts, limits.enqueue_us) {
  PolicyRanking ranking = options.only.empty()
                              ? rank_policies(facts, problem, pruning_of(options))
                              : rank_policies(facts, problem, policies_of(options.only), pruning_of(options));
  ranking_ = std::move(ranking.policies);
  rejected_ = std::move(ranking.rejected);
  valid_policies_ = ranking.valid;
  for (const RankedPolicy& ranked : ranking_)
    points_.push_back(surrogate_.add({ranked.policy, ranked.geometry}, ranked.prediction));
  for (const Trial& trial : options.nearby)
    surrogate_.observe_nearby(trial.candidate, predict(facts, problem, trial.candidate, 1).enqueue_us,
                              trial.predicted_us, trial.median_us);
  is_taken_.resize(ranking_.size());
  comes_first_.resize(ranking_.size());
  put_first();
}

void SearchOrder::put_first() {
  const auto put = [&](std::size_t place) {
    if (place >= ranking_.size() || comes_first_[place]) return;
    comes_first_[place] = true;
    first_.push_back(place);
  };
  const auto put_first_of = [&](const auto& is_wanted) {
    const auto at = std::find_if(ranking_.begin(), ranking_.end(),
                                 [&](const RankedPolicy& ranked) { return is_wanted(ranked.policy); });
    put(static_cast<std::size_t>(at - ranking_.begin()));
  };
  if (options_.only.empty()) put(0);
  for (const Candidate& known : options_.start_from)
    put_first_of([&](const Policy& policy) { return policy == known.policy; });
  const std::vector<Parameter>& parameters = problem_.family->space().parameters();
  const bool is_spread = options_.only.empty() && options_.nearby.empty();
  for (int i = 0; is_spread && i < static_cast<int>(parameters.size()); ++i) {
    const Parameter& parameter = parameters[static_cast<std::size_t>(i)];
    std::vector<std::int32_t> seen;
    for (const std::int32_t value : parameter.values) {
      const auto is_near = [&](std::int32_t other) { return !is_an_octave_apart(value, other); };
      if (has_close_values(parameter) && std::any_of(seen.begin(), seen.end(), is_near)) continue;
      seen.push_back(value);
      put_first_of([&](const Policy& policy) { return policy[i] == value; });
    }
  }
  std::reverse(first_.begin(), first_.end());
}

SearchOrder::Wave SearchOrder::next(std::size_t count, double leader_us) {
  Wave wave;
  const auto take = [&](std::size_t place) {
    wave.push_back(place);
    is_taken_[place] = true;
  };
  for (; wave.size() < count && !first_.empty(); first_.pop_back())
    if (!is_taken_[first_.back()]) take(first_.back());
  Wave others = left();
  std::erase_if(others, [&](std::size_t place) { return comes_first_[place]; });
  if (wave.size() == count || others.empty()) return wave;

  if (!std::isfinite(leader_us))
    for (const std::size_t point : points_) leader_us = std::min(leader_us, surrogate_.expected_us(point));
  std::vector<double> gains(ranking_.size());
  for (const std::size_t place : others) gains[place] = surrogate_.expected_gain(points_[place], leader_us);
  std::stable_sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) { return gains[a] > gains[b]; });
  for (std::size_t i = 0; wave.size() < count && i < others.size(); ++i) take(others[i]);
  return wave;
}

void SearchOrder::give_back(const Wave& wave) {
  for (std::size_t i = wave.size(); i-- > 0;) {
    is_taken_[wave[i]] = false;
    if (comes_first_[wave[i]]) first_.push_back(wave[i]);
  }
}

bool SearchOrder::is_near_relative(const Policy& policy, const Policy& leader, double expected_us,
                                   double leader_us) const {
  const ParameterSpace& space = problem_.family->space();
  int differing = 0;
  bool has_order = false;
  for (int i = 0; i < leader.size(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    // A parameter that exists in one of them alone follows from another difference.
    if (policy[i] == leader[i] || !space.exists(index, policy) || !space.exists(index, leader)) continue;
    const Parameter& parameter = space.parameters()[index];
    has_order = parameter.kind() == ParameterKind::ordinal;
    if (++differing > 1) return false;
    if (has_close_values(parameter) && !is_representative(parameter, policy[i], leader[i])) return false;
  }
  return expected_us <= (has_order ? kMostBehind : kMostBehindWithoutOrder) * leader_us;
}

SearchOrder::Wave SearchOrder::take_relatives(const Policy& leader, double leader_us) {
  Wave relatives = left();
  std::erase_if(relatives, [&](std::size_t place) {
    return !is_near_relative(ranking_[place].policy, leader, surrogate_.expected_us(points_[place]), leader_us);
  });
  for (const std::size_t place : relatives) is_taken_[place] = true;
  return relatives;
}

SearchOrder::Wave SearchOrder::left() const {
  Wave places;
  for (std::size_t i = 0; i < ranking_.size(); ++i)
    if (!is_taken_[i]) places.push_back(i);
  return places;
}

double SearchOrder::best_gain(const Wave& places, double leader_us) {
  double best = 0;
  for (const std::size_t place : places) best = std::max(best, surrogate_.expected_gain(points_[place], leader_us));
  return best;
}

std::vector<Candidate> leaders_of(const std::vector<const Trial*>& measured, const ParameterSpace& space) {
  std::vector<Candidate> leaders;
  for (const Trial* const trial : measured) {
    if (trial->median_us > kNearTheLeader * measured.front()->median_us) break;
    const Policy& policy = trial->candidate.policy;
    const auto is_named_and_new = [&](int parameter) {
      return space.parameters()[static_cast<std::size_t>(parameter)].kind() == ParameterKind::categorical &&
             std::none_of(leaders.begin(), leaders.end(),
                          [&](const Candidate& leader) { return leader.policy[parameter] == policy[parameter]; });
    };
    bool is_leader = leaders.empty();
    for (int i = 0; i < policy.size() && !is_leader; ++i) is_leader = is_named_and_new(i);
    if (is_leader) leaders.push_back(trial->candidate);
  }
  return leaders;
}

}  // namespace hone
