#include "runtime/choose/exploration.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/search/model.h"

namespace hone {
namespace {

/// Policies of a wave: enough to keep all cores busy, few enough to stop in time.
constexpr std::size_t kSmallestWave = 16;
constexpr std::size_t kLargestWave = 32;

/// Of the next problem so many waves are compiled ahead besides the first.
constexpr std::size_t kFurtherWaves = 2;

/// Candidates are measured in groups of this many: what is expected of the others changes with each.
constexpr std::size_t kCandidateGroup = 4;

/// Candidates that are expected to improve on the leader by less are not worth measuring; before so many have been
/// measured, expectations are worth nothing.
constexpr double kLeastGain = 0.002;
constexpr int kFewestMeasured = 12;

/// What is looked around at the end of a search: the fastest of a named value, if it is no further behind the leader.
constexpr double kNearTheLeader = 1.08;

/// One part in so many of the budget is for measuring what was compiled first.
constexpr int kFirstWaveShare = 5;

/// A leader this close to what memory and launching take at least cannot be beaten by anything worth finding.
constexpr double kRooflineSlack = 1.005;

constexpr const char* kNearRoofline = "the leader is as fast as memory and launching allow";

std::size_t wave_size() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), kSmallestWave, kLargestWave);
}

/// Where the model's first choice should, by its own constants, be as fast as memory and launching allow, the first
/// group ends the search; where a neighbour was measured, what is expected is worth more, and the rest is compiled
/// while this is measured.
std::size_t first_wave_size(const DeviceFacts& facts, const Problem& problem, const TuningOptions& options,
                            const SearchOrder& order) {
  const std::vector<RankedPolicy>& ranking = order.ranking();
  const bool may_end =
      !ranking.empty() &&
      ranking.front().prediction.us() <= kRooflineSlack * roofline_us(facts, DeviceLimits{}, problem, options.inputs);
  if (may_end) return kCandidateGroup;
  return options.nearby.empty() ? wave_size() : wave_size() / 2;
}

}  // namespace

bool may_compile_meanwhile(const DeviceFacts& facts) {
  return facts.kind != "host" && std::thread::hardware_concurrency() > 1;
}

std::vector<Unit> first_units(const DeviceFacts& facts, const Problem& problem, const TuningOptions& options) {
  SearchOrder order(facts, problem, options);
  const std::size_t count = first_wave_size(facts, problem, options, order) + kFurtherWaves * wave_size();
  std::vector<Unit> units;
  for (const std::size_t place : order.next(count, std::numeric_limits<double>::infinity()))
    units.push_back(unit_of(problem, order.ranking()[place].policy));
  return units;
}

Exploration::Exploration(Device& device, const Problem& problem, const TuningOptions& options, BinaryMemo& memo,
                         Race& race, Clock::time_point compile_deadline, Clock::time_point deadline)
    : device_(device),
      problem_(problem),
      options_(options),
      memo_(memo),
      race_(race),
      compile_deadline_(compile_deadline),
      deadline_(deadline),
      roofline_us_(roofline_us(device.facts(), device.limits(), problem, options.inputs)),
      order_(device.facts(), problem, options) {}

void Exploration::run() {
  rejected_ = std::move(order_.rejected());

  Wave wave = order_.next(first_wave_size(device_.facts(), problem_, options_, order_), race_.best_us());
  while (!wave.empty()) {
    const auto start = Clock::now();
    std::vector<CompileOutcome> outcomes =
        compile(wave, has_candidates_ ? start + (deadline_ - start) / 2 : compile_deadline_);
    compile_ms_ += ms_since(start);
    const std::size_t late = load(wave, std::move(outcomes));
    BinaryMemo::Ahead ahead;
    wave.clear();
    if ((measured_ > 0 || late > 0) && may_compile_meanwhile(device_.facts())) {
      wave = order_.next(measured_ > 0 ? wave_size() : late, race_.best_us());
      if (!wave.empty()) ahead = compile_ahead(wave);
    }
    // However long the first wave took to compile, it is measured: a choice among few is better than none.
    measuring_deadline_ =
        measured_ > 0 ? deadline_ : std::max(deadline_, Clock::now() + options_.budget / kFirstWaveShare);
    measure();
    if (is_done(wave)) {
      order_.give_back(wave);
      break;
    }
    if (wave.empty()) wave = order_.next(wave_size(), race_.best_us());
  }
  if (!measures_all()) refine();
  reject_rest();
}

/// The candidates of a policy that are to be compared, whether or not they would be listed for this problem: a grid
/// that is larger than the work is cut down to it.
CandidateList Exploration::list_only(const CompiledPolicy& compiled) const {
  const WorkShape shape = problem_.family->shape(problem_, compiled.policy);
  CandidateList list;
  for (const Candidate& candidate : options_.only) {
    if (candidate.policy != compiled.policy) continue;
    Trial trial{.candidate = candidate, .resources = compiled.resources, .resident_blocks = compiled.resident_blocks};
    const std::size_t workspace = problem_.family->workspace_bytes(problem_, candidate);
    if (compiled.resident_blocks == 0) {
      trial.reason = "no block is resident";
    } else if (shape.one_block && candidate.geometry.max_blocks != shape.cluster_blocks) {
      trial.reason = fmt::format("works with {} blocks alone", shape.cluster_blocks);
    } else if (workspace > options_.workspace_bytes) {
      trial.reason = fmt::format("needs {} bytes of workspace, there are {}", workspace, options_.workspace_bytes);
    } else {
      const Prediction prediction = predict(device_.facts(), problem_, candidate, compiled.resident_blocks);
      trial.bytes_in_flight_per_sm = prediction.bytes_in_flight_per_sm;
      trial.predicted_us = prediction.us();
      trial.verdict = Verdict::ok;
    }
    (trial.reason.empty() ? list.candidates : list.rejected).push_back(std::move(trial));
  }
  return list;
}

std::vector<CompileOutcome> Exploration::compile(const Wave& wave, Clock::time_point deadline) const {
  return memo_.compile(device_, units_of(wave), options_.stop,
                       [&](int done, int total) { report(TuningPhase::compiling, done, total); }, deadline);
}

BinaryMemo::Ahead Exploration::compile_ahead(const Wave& wave) const {
  return memo_.compile_ahead(device_, [units = units_of(wave)] { return units; }, deadline_);
}

Unit Exploration::unit_at(std::size_t place) const { return unit_of(problem_, order_.ranking()[place].policy); }

std::vector<Unit> Exploration::units_of(const Wave& wave) const {
  std::vector<Unit> units;
  for (const std::size_t place : wave) units.push_back(unit_at(place));
  return units;
}

/// What was not begun in time is given back, to come with a later wave, if there is something to measure meanwhile;
/// how many policies that are.
std::size_t Exploration::load(const Wave& wave, std::vector<CompileOutcome> outcomes) {
  Wave late;
  for (std::size_t i = 0; i < wave.size(); ++i) {
    if (outcomes[i].started()) load(wave[i], std::move(outcomes[i]));
    else late.push_back(wave[i]);
  }
  if (has_candidates_ && Clock::now() < deadline_ && !options_.stop.stop_requested()) {
    order_.give_back(late);
    return late.size();
  }
  for (const std::size_t place : late) load(place, CompileOutcome{});
  return 0;
}

void Exploration::load(std::size_t place, CompileOutcome outcome) {
  const RankedPolicy& ranked = order_.ranking()[place];
  const Unit unit = unit_at(place);
  // However small the budget is, something is measured.
  if (!outcome.started() && !has_candidates_ && !options_.stop.stop_requested())
    outcome = memo_.compile(device_, std::span(&unit, 1)).front();
  Trial trial{.candidate = {ranked.policy, {}}, .predicted_us = ranked.prediction.us()};
  if (outcome.binary) {
    try {
      code_.push_back(load_policy(device_, problem_, ranked.policy, unit, outcome.binary));
      list(place);
      return;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::device_lost) throw;
      trial.verdict = Verdict::failed;
      trial.reason = error.what();
    }
  } else if (!outcome.error.empty()) {
    trial.verdict = Verdict::failed;
    trial.reason = outcome.error;
  } else if (options_.stop.stop_requested()) {
    trial.reason = "not compiled: the tuning was stopped";
  } else {
    trial.reason = "not compiled: the time budget was spent";
    budget_spent_ = true;
  }
  rejected_.push_back(std::move(trial));
}

/// Adds the candidates of the policy that was loaded last.
void Exploration::list(std::size_t place) {
  const CompiledPolicy& compiled = code_.back().compiled;
  CandidateList list = options_.only.empty() ? list_candidates(device_.facts(), problem_, std::span(&compiled, 1),
                                                               options_.workspace_bytes, pruning_of(options_))
                                             : list_only(compiled);
  const std::size_t first_found = found_.size();
  for (Trial& trial : list.candidates) {
    const auto excluded = std::find_if(options_.excluded.begin(), options_.excluded.end(),
                                       [&](const ExcludedCandidate& out) {
                                         return out.candidate == trial.candidate ||
                                                (out.candidate.geometry.max_blocks == 0 &&
                                                 out.candidate.policy == trial.candidate.policy);
                                       });
    if (excluded != options_.excluded.end()) {
      trial.verdict = Verdict::failed;
      trial.reason = excluded->reason;
      rejected_.push_back(std::move(trial));
      continue;
    }
    found_.push_back({.place = place, .trial = std::move(trial)});
  }
  for (std::size_t i = first_found; i < found_.size(); ++i)
    found_[i].point = order_.surrogate().add(
        found_[i].trial.candidate,
        predict(device_.facts(), problem_, found_[i].trial.candidate, compiled.resident_blocks));
  if (order_.comes_first(place) && first_found < found_.size()) found_[first_found].must_be_measured = true;
  mark_known(compiled.policy, first_found);
  has_candidates_ = has_candidates_ || !found_.empty();
  std::move(list.rejected.begin(), list.rejected.end(), std::back_inserter(rejected_));
}

/// A neighbour's winner must be measured; where its geometry makes no sense for this problem, the best one of its
/// policy.
void Exploration::mark_known(const Policy& policy, std::size_t first_found) {
  if (first_found == found_.size()) return;
  for (const Candidate& known : options_.start_from) {
    if (known.policy != policy) continue;
    const auto same = std::find_if(found_.begin() + static_cast<std::ptrdiff_t>(first_found), found_.end(),
                                   [&](const Found& found) { return found.trial.candidate == known; });
    (same != found_.end() ? *same : found_[first_found]).must_be_measured = true;
  }
}

/// The model's choice is the best candidate of the highest-ranked policy that has any.
void Exploration::mark_default() {
  if (has_default_ || found_.empty() || !options_.only.empty()) return;
  Found& first = *std::min_element(found_.begin(), found_.end(),
                                   [](const Found& a, const Found& b) { return a.place < b.place; });
  first.trial.is_default = true;
  first.must_be_measured = true;
  has_default_ = true;
}

void Exploration::measure() {
  mark_default();
  std::stable_sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
    if (a.trial.is_default != b.trial.is_default) return a.trial.is_default;
    if (a.must_be_measured != b.must_be_measured) return a.must_be_measured;
    return a.trial.predicted_us < b.trial.predicted_us;
  });
  listed_ += static_cast<int>(found_.size());
  std::size_t end = 0;
  for (std::size_t begin = 0; begin < found_.size(); begin = end) {
    sort_by_gain(std::span(found_).subspan(begin));
    end = std::min(found_.size(), begin + kCandidateGroup);
    measure_group(std::span(found_).subspan(begin, end - begin));
  }
  found_.clear();
}

/// Those that must be measured stay in front.
void Exploration::sort_by_gain(std::span<Found> found) {
  if (measures_all() || measured_ == 0) return;
  const auto optional =
      std::find_if(found.begin(), found.end(), [](const Found& each) { return !each.must_be_measured; });
  for (auto each = optional; each != found.end(); ++each)
    each->gain = order_.surrogate().expected_gain(each->point, race_.best_us());
  std::stable_sort(optional, found.end(), [](const Found& a, const Found& b) { return a.gain > b.gain; });
}

void Exploration::measure_group(std::span<Found> group) {
  std::vector<Contender*> contenders;
  std::vector<std::size_t> points;
  for (Found& found : group) {
    const std::string reason = why_not(found);
    if (!reason.empty()) {
      found.trial.verdict = Verdict::rejected;
      found.trial.reason = "not measured: " + reason;
      passed_over_.push_back(std::move(found));
      ++done_;
      continue;
    }
    Contender& contender = contenders_.emplace_back();
    contender.trial = std::move(found.trial);
    contender.trial.verdict = Verdict::ok;
    contender.trial.reason.clear();
    contender.loaded = {contender.trial.candidate, code_of(contender.trial.candidate).module};
    contenders.push_back(&contender);
    points.push_back(found.point);
  }
  const int done_before = done_;
  race_.qualify(contenders, {.deadline = measuring_deadline_, .stop = options_.stop}, [&](int done) {
    done_ = done_before + done;
    report(TuningPhase::measuring, done_, listed_);
  });
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (contenders[i]->trial.samples == 0) continue;
    if (!measures_all()) order_.surrogate().observe(points[i], contenders[i]->trial.median_us);
    ++measured_;
  }
}

/// Why a candidate is not measured; "" if it is.
std::string Exploration::why_not(const Found& found) {
  if (measures_all() || measured_ == 0) return "";
  if (is_leader_near_roofline()) return kNearRoofline;
  if (found.must_be_measured || measured_ < kFewestMeasured || found.gain >= kLeastGain) return "";
  return fmt::format("{:.2f} µs are expected, the leader takes {:.2f}: a gain of {:.2f} % is not worth it",
                     order_.surrogate().expected_us(found.point), race_.best_us(), 100 * found.gain);
}

void Exploration::refine() {
  std::vector<Candidate> looked_around;
  while (end_ == SearchEnd::rest_expected_slower || end_ == SearchEnd::everything_searched) {
    if (measured_ == 0 || is_leader_near_roofline() || Clock::now() >= deadline_ || options_.stop.stop_requested())
      return;
    bool has_any = false;
    for (const Candidate& candidate : leaders()) {
      if (std::find(looked_around.begin(), looked_around.end(), candidate) != looked_around.end()) continue;
      looked_around.push_back(candidate);
      take_relatives(candidate);
      has_any = mark_relatives(candidate) || has_any;
    }
    measure();
    if (!has_any) return;
  }
}

/// The fastest so far, and the fastest of each value of a named parameter that is nearly as fast: the surrogate takes
/// values without an order for equally alike, and knows little of how one does where another leads.
std::vector<Candidate> Exploration::leaders() const {
  std::vector<const Contender*> measured;
  for (const Contender& contender : contenders_)
    if (contender.trial.samples > 0) measured.push_back(&contender);
  std::stable_sort(measured.begin(), measured.end(),
                   [](const Contender* a, const Contender* b) { return a->trial.median_us < b->trial.median_us; });
  std::erase_if(measured, [most_us = kNearTheLeader * measured.front()->trial.median_us](const Contender* contender) {
    return contender->trial.median_us > most_us;
  });
  std::vector<Candidate> leaders;
  const std::vector<Parameter>& parameters = problem_.family->space().parameters();
  for (const Contender* contender : measured) {
    const Policy& policy = contender->trial.candidate.policy;
    bool is_first = leaders.empty();
    for (int i = 0; i < policy.size() && !is_first; ++i)
      is_first = !parameters[static_cast<std::size_t>(i)].value_names.empty() &&
                 std::none_of(leaders.begin(), leaders.end(),
                              [&](const Candidate& leader) { return leader.policy[i] == policy[i]; });
    if (is_first) leaders.push_back(contender->trial.candidate);
  }
  return leaders;
}

/// Compiles and lists what is not yet, and takes up again what was passed over.
void Exploration::take_relatives(const Candidate& leader) {
  const Wave wave = order_.take_relatives(leader.policy, race_.best_us());
  const auto start = Clock::now();
  std::vector<CompileOutcome> outcomes = compile(wave, deadline_);
  compile_ms_ += ms_since(start);
  for (std::size_t i = 0; i < wave.size(); ++i) load(wave[i], std::move(outcomes[i]));
  const auto relatives = std::stable_partition(passed_over_.begin(), passed_over_.end(),
                                               [&](const Found& found) { return !is_near_relative(found, leader); });
  std::move(relatives, passed_over_.end(), std::back_inserter(found_));
  passed_over_.erase(relatives, passed_over_.end());
}

bool Exploration::is_near_relative(const Found& found, const Candidate& leader) {
  return order_.is_near_relative(found.trial.candidate.policy, leader.policy,
                                 order_.surrogate().expected_us(found.point), race_.best_us());
}

/// Of each policy the most promising geometry; false: there is none.
bool Exploration::mark_relatives(const Candidate& leader) {
  std::map<std::size_t, Found*> best;
  const auto expected_us = [&](const Found& found) { return order_.surrogate().expected_us(found.point); };
  for (Found& found : found_) {
    if (!is_near_relative(found, leader)) continue;
    Found*& other = best[found.place];
    if (!other || expected_us(found) < expected_us(*other)) other = &found;
  }
  for (const auto& [place, found] : best) found->must_be_measured = true;
  return !best.empty();
}

bool Exploration::is_leader_near_roofline() const {
  return race_.best_us() <= kRooflineSlack * roofline_us_;
}

/// `next`: the wave that is being compiled.
bool Exploration::is_done(const Wave& next) {
  if (options_.stop.stop_requested()) {
    end_ = SearchEnd::stopped;
  } else if (Clock::now() >= deadline_) {
    budget_spent_ = true;
  } else if (measures_all() || !has_candidates_) {
    return false;
  } else if (is_leader_near_roofline()) {
    end_ = SearchEnd::near_roofline;
  } else if (measured_ >= kFewestMeasured && promises_nothing(next)) {
    end_ = SearchEnd::rest_expected_slower;
  } else {
    return false;
  }
  return true;
}

/// False when there is no rest.
bool Exploration::promises_nothing(const Wave& next) {
  Wave rest = order_.left();
  rest.insert(rest.end(), next.begin(), next.end());
  return !rest.empty() && order_.best_gain(rest, race_.best_us()) < kLeastGain;
}

void Exploration::reject_rest() {
  for (Found& found : passed_over_) rejected_.push_back(std::move(found.trial));
  if (budget_spent_ && end_ != SearchEnd::stopped) end_ = SearchEnd::budget_spent;
  for (const std::size_t place : order_.left()) {
    const RankedPolicy& ranked = order_.ranking()[place];
    rejected_.push_back({.candidate = {ranked.policy, {}},
                         .predicted_us = ranked.prediction.us(),
                         .reason = fmt::format("not compiled: {}", why_the_rest_is_not())});
  }
}

std::string Exploration::why_the_rest_is_not() const {
  switch (end_) {
    case SearchEnd::near_roofline: return kNearRoofline;
    case SearchEnd::rest_expected_slower:
      return fmt::format("it is not expected to improve on the leader, which takes {:.2f} µs", race_.best_us());
    case SearchEnd::stopped: return "the tuning was stopped";
    case SearchEnd::budget_spent:
    case SearchEnd::everything_searched: break;
  }
  return "the time budget was spent";
}

void Exploration::report(TuningPhase phase, int done, int total) const {
  const double best_us = std::isfinite(race_.best_us()) ? race_.best_us() : 0;
  if (options_.on_progress) options_.on_progress({.phase = phase, .done = done, .total = total, .best_us = best_us});
}

const CompiledCode& Exploration::code_of(const Candidate& candidate) const {
  return *std::find_if(code_.begin(), code_.end(),
                       [&](const CompiledCode& code) { return code.compiled.policy == candidate.policy; });
}

}  // namespace hone
