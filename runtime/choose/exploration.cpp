#include "runtime/choose/exploration.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <iterator>
#include <limits>
#include <thread>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/search/model.h"

namespace hone {
namespace {

/// Variants of a wave: enough to keep all cores busy, few enough to stop in time.
constexpr std::size_t kSmallestWave = 16;
constexpr std::size_t kLargestWave = 32;

/// Candidates are weighed against the leader in groups of this many, since it changes.
constexpr int kFirstGroup = 8;
constexpr int kGroup = 4;

/// Variants of the first wave that are taken from all over the ranking, to show how wrong the model is.
constexpr std::size_t kProbes = 4;

/// KernelFamily::share_to_measure() is at least so many candidates; and half as many again follow whenever one of them has been
/// faster than the leader by more than the last percent.
constexpr int kFewestToMeasure = 8;
constexpr double kImprovement = 0.01;

/// Compiling ahead leaves these to the thread that enqueues what is timed, and to the driver's.
constexpr std::size_t kSpareCores = 2;

/// A leader this close to what memory and launching take at least cannot be beaten by anything worth finding.
constexpr double kRooflineSlack = 1.005;

constexpr const char* kNearRoofline = "the leader is as fast as memory and launching allow";
constexpr const char* kSettled = "what was predicted to be faster no longer improved on the leader";

std::size_t wave_size() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), kSmallestWave, kLargestWave);
}

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

std::vector<Unit> first_units(const DeviceFacts& facts, const Problem& problem) {
  const VariantRanking ranking = rank_variants(facts, problem);
  std::vector<Unit> units;
  for (std::size_t i = 0; i < std::min(wave_size(), ranking.variants.size()); ++i)
    units.push_back(unit_of(problem, ranking.variants[i].variant));
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
      deadline_(deadline) {}

void Exploration::run() {
  VariantRanking ranking = rank_variants(device_.facts(), problem_);
  ranking_ = std::move(ranking.variants);
  rejected_ = std::move(ranking.rejected);
  if (!options_.only.empty()) keep_only();
  for (const RankedVariant& ranked : ranking_) {
    units_.push_back(unit_of(problem_, ranked.variant));
    candidates_ += ranked.geometries;
  }
  to_search_ = order_variants();

  Wave wave = next_wave();
  searched_ = wave.size();
  const auto start = Clock::now();
  std::vector<CompileOutcome> outcomes = compile(wave, false);
  compile_ms_ = ms_since(start);
  while (!wave.empty()) {
    for (std::size_t i = 0; i < wave.size(); ++i) load(wave[i], std::move(outcomes[i]));
    const Wave next = next_wave();
    std::future<std::vector<CompileOutcome>> ahead;
    if (compiles_ahead() && !next.empty())
      ahead = std::async(std::launch::async, [this, &next] { return compile(next, true); });
    measure();
    if (is_done()) {
      if (ahead.valid()) ahead.wait();
      break;
    }
    searched_ += next.size();
    const auto waiting_since = Clock::now();
    outcomes = ahead.valid() ? ahead.get() : compile(next, false);
    compile_ms_ += ms_since(waiting_since);
    wave = next;
  }
  reject_rest();
}

/// Leaves of the ranking what is to be compared; the other variants have no part in this tuning, and no record.
void Exploration::keep_only() {
  const auto is_other = [&](const Variant& variant) {
    return std::none_of(options_.only.begin(), options_.only.end(),
                        [&](const Candidate& candidate) { return candidate.variant == variant; });
  };
  std::erase_if(ranking_, [&](const RankedVariant& ranked) { return is_other(ranked.variant); });
  std::erase_if(rejected_, [&](const Trial& trial) { return is_other(trial.candidate.variant); });
}

/// The candidates of a variant that are to be compared, whether or not they would be listed for this problem: a grid
/// that is larger than the work is cut down to it.
CandidateList Exploration::list_only(const CompiledVariant& compiled) const {
  const WorkShape shape = problem_.family->shape(problem_, compiled.variant);
  CandidateList list;
  for (const Candidate& candidate : options_.only) {
    if (candidate.variant != compiled.variant) continue;
    Trial trial{.candidate = candidate, .resources = compiled.resources, .resident_blocks = compiled.resident_blocks};
    const std::size_t workspace = problem_.family->workspace_bytes(problem_, candidate);
    if (compiled.resident_blocks == 0) {
      trial.reason = "no block is resident";
    } else if (shape.one_block && candidate.geometry.max_blocks != shape.cluster_blocks) {
      trial.reason = fmt::format("works with {} blocks alone", shape.cluster_blocks);
    } else if (workspace > options_.workspace_bytes) {
      trial.reason = fmt::format("needs {} bytes of workspace, there are {}", workspace, options_.workspace_bytes);
    } else {
      const Prediction prediction =
          predict(device_.facts(), shape, problem_.family->bytes_moved(problem_), compiled.resident_blocks,
                  candidate.geometry, problem_.launch_context);
      trial.bytes_in_flight_per_sm = prediction.bytes_in_flight_per_sm;
      trial.predicted_us = prediction.us;
      trial.verdict = Verdict::ok;
    }
    (trial.reason.empty() ? list.candidates : list.rejected).push_back(std::move(trial));
  }
  return list;
}

/// The ranking with the model's choice first, then neighbours' winners; where the model has to prove itself, the probes among
/// the first wave.
std::vector<std::size_t> Exploration::order_variants() {
  std::vector<std::size_t> order;
  std::vector<bool> taken(ranking_.size());
  const auto take = [&](std::size_t variant) {
    if (variant >= ranking_.size() || taken[variant]) return;
    taken[variant] = true;
    order.push_back(variant);
  };
  take(0);
  for (const Candidate& known : options_.start_from) {
    const auto at = std::find_if(ranking_.begin(), ranking_.end(),
                                 [&](const RankedVariant& ranked) { return ranked.variant == known.variant; });
    take(static_cast<std::size_t>(at - ranking_.begin()));
  }
  is_probe_.assign(ranking_.size(), false);
  if (problem_.family->share_to_measure() >= 1) {
    const std::size_t top = wave_size() - std::min(wave_size(), order.size() + kProbes);
    for (std::size_t i = 0; i < top; ++i) take(i + 1);
    for (std::size_t i = 1; i <= kProbes && order.size() < ranking_.size(); ++i) {
      const std::size_t place = i * ranking_.size() / (kProbes + 1);
      is_probe_[place] = !taken[place];
      take(place);
    }
  }
  for (std::size_t i = 0; i < ranking_.size(); ++i) take(i);
  return order;
}

Exploration::Wave Exploration::next_wave() const {
  const std::size_t end = std::min(to_search_.size(), searched_ + wave_size());
  return {to_search_.begin() + static_cast<std::ptrdiff_t>(searched_),
          to_search_.begin() + static_cast<std::ptrdiff_t>(end)};
}

/// On the host device, compiling and measuring would take each other's cores.
bool Exploration::compiles_ahead() const {
  return device_.facts().kind != "host" && std::thread::hardware_concurrency() > 1 &&
         !is_paced_by_host(device_.facts(), problem_);
}

std::vector<CompileOutcome> Exploration::compile(const Wave& wave, bool in_background) const {
  std::vector<Unit> units;
  for (std::size_t place : wave) units.push_back(units_[place]);
  CompileProgress on_progress;
  if (!in_background) on_progress = [&](int done, int total) { report(TuningPhase::compiling, done, total); };
  return memo_.compile(device_, units, options_.stop, on_progress, has_candidates_ ? deadline_ : compile_deadline_,
                       in_background ? kSpareCores : 0);
}

void Exploration::load(std::size_t place, CompileOutcome outcome) {
  const RankedVariant& ranked = ranking_[place];
  // However small the budget is, something is measured.
  if (!outcome.started() && !has_candidates_ && !options_.stop.stop_requested())
    outcome = memo_.compile(device_, std::span(units_).subspan(place, 1)).front();
  Trial trial{.candidate = {ranked.variant, {}}, .predicted_us = ranked.predicted_us};
  if (outcome.binary) {
    try {
      code_.push_back(load_variant(device_, problem_, ranked.variant, units_[place], outcome.binary));
      list(place);
      return;
    } catch (const Error& error) {
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

/// Adds the candidates of the variant that was loaded last.
void Exploration::list(std::size_t place) {
  const CompiledVariant& compiled = code_.back().compiled;
  CandidateList list = options_.only.empty() ? list_candidates(device_.facts(), problem_, std::span(&compiled, 1),
                                                               options_.workspace_bytes)
                                             : list_only(compiled);
  const std::size_t first_found = found_.size();
  for (Trial& trial : list.candidates) {
    const auto excluded = std::find_if(options_.excluded.begin(), options_.excluded.end(),
                                       [&](const ExcludedCandidate& out) {
                                         return out.candidate == trial.candidate ||
                                                (out.candidate.geometry.max_blocks == 0 &&
                                                 out.candidate.variant == trial.candidate.variant);
                                       });
    if (excluded != options_.excluded.end()) {
      trial.verdict = Verdict::failed;
      trial.reason = excluded->reason;
      rejected_.push_back(std::move(trial));
      continue;
    }
    found_.push_back({.place = place, .trial = std::move(trial)});
  }
  if (is_probe_[place] && first_found < found_.size()) found_[first_found].must_be_measured = true;
  mark_known(compiled.variant, first_found);
  has_candidates_ = has_candidates_ || !found_.empty();
  std::move(list.rejected.begin(), list.rejected.end(), std::back_inserter(rejected_));
}

/// A neighbour's winner must be measured; where its geometry makes no sense for this problem, the best one of its variant.
void Exploration::mark_known(const Variant& variant, std::size_t first_found) {
  if (first_found == found_.size()) return;
  for (const Candidate& known : options_.start_from) {
    if (known.variant != variant) continue;
    const auto same = std::find_if(found_.begin() + static_cast<std::ptrdiff_t>(first_found), found_.end(),
                                   [&](const Found& found) { return found.trial.candidate == known; });
    (same != found_.end() ? *same : found_[first_found]).must_be_measured = true;
  }
}

/// The model's choice is the best candidate of the highest-ranked variant that has any.
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
    end = std::min(found_.size(), begin + static_cast<std::size_t>(measured_ == 0 ? kFirstGroup : kGroup));
    measure_group(std::span(found_).subspan(begin, end - begin));
  }
  found_.clear();
}

void Exploration::measure_group(std::span<Found> group) {
  std::vector<Contender*> contenders;
  for (Found& found : group) {
    const std::string reason = found.must_be_measured ? "" : why_not(found.trial.predicted_us);
    if (!reason.empty()) {
      found.trial.verdict = Verdict::rejected;
      found.trial.reason = "not measured: " + reason;
      rejected_.push_back(std::move(found.trial));
      ++done_;
      continue;
    }
    Contender& contender = contenders_.emplace_back();
    contender.trial = std::move(found.trial);
    contender.loaded = {contender.trial.candidate, code_of(contender.trial.candidate).module};
    contenders.push_back(&contender);
  }
  const int done_before = done_;
  race_.qualify(contenders, {.deadline = deadline_, .stop = options_.stop}, [&](int done) {
    done_ = done_before + done;
    report(TuningPhase::measuring, done_, listed_);
  });
  for (const Contender* contender : contenders) {
    if (contender->trial.samples == 0) continue;
    error_.add(contender->trial.predicted_us, contender->trial.median_us);
    ++measured_;
  }
  if (measured_ > 0 && (leader_us_ == 0 || race_.best_us() < (1 - kImprovement) * leader_us_)) {
    leader_us_ = race_.best_us();
    leader_since_ = measured_;
  }
}

bool Exploration::has_settled() const {
  const double share = problem_.family->share_to_measure();
  const int enough = std::max(kFewestToMeasure, static_cast<int>(share * candidates_));
  return share < 1 && measured_ >= enough && 2 * (measured_ - leader_since_) >= enough;
}

bool Exploration::cannot_win(double predicted_us) const {
  return !measures_all() && error_.optimistic_us(predicted_us) > race_.best_us();
}

std::string Exploration::why_it_cannot_win(double predicted_us) const {
  return fmt::format("predicted {:.2f} µs, by the model's error so far at least {:.2f}; the leader takes {:.2f}",
                     predicted_us, error_.optimistic_us(predicted_us), race_.best_us());
}

/// Why a candidate of this prediction is not measured; "" if it is.
std::string Exploration::why_not(double predicted_us) const {
  if (measures_all() || measured_ == 0) return "";
  if (is_near_roofline()) return kNearRoofline;
  if (has_settled()) return kSettled;
  return cannot_win(predicted_us) ? why_it_cannot_win(predicted_us) : "";
}

bool Exploration::is_near_roofline() const {
  const double least_us = std::max(race_.enqueue_us(), roofline_us(device_.facts(), problem_));
  return race_.best_us() <= kRooflineSlack * least_us;
}

bool Exploration::is_done() {
  if (options_.stop.stop_requested()) {
    end_ = SearchEnd::stopped;
  } else if (Clock::now() >= deadline_) {
    budget_spent_ = true;
  } else if (measures_all() || !has_candidates_) {
    return false;
  } else if (is_near_roofline()) {
    end_ = SearchEnd::near_roofline;
  } else if (searched_ < to_search_.size() && has_settled()) {
    end_ = SearchEnd::settled;
  } else if (searched_ < to_search_.size() && cannot_win(best_of_the_rest_us())) {
    end_ = SearchEnd::rest_predicted_slower;
  } else {
    return false;
  }
  return true;
}

double Exploration::best_of_the_rest_us() const {
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = searched_; i < to_search_.size(); ++i)
    best = std::min(best, ranking_[to_search_[i]].predicted_us);
  return best;
}

void Exploration::reject_rest() {
  if (budget_spent_ && end_ != SearchEnd::stopped) end_ = SearchEnd::budget_spent;
  for (; searched_ < to_search_.size(); ++searched_) {
    const RankedVariant& ranked = ranking_[to_search_[searched_]];
    Trial trial{.candidate = {ranked.variant, {}}, .predicted_us = ranked.predicted_us};
    switch (end_) {
      case SearchEnd::near_roofline:
        trial.reason = fmt::format("not compiled: {}", kNearRoofline);
        break;
      case SearchEnd::settled:
        trial.reason = fmt::format("not compiled: {}", kSettled);
        break;
      case SearchEnd::rest_predicted_slower:
        trial.reason = "not compiled: " + why_it_cannot_win(ranked.predicted_us);
        break;
      case SearchEnd::stopped:
        trial.reason = "not compiled: the tuning was stopped";
        break;
      case SearchEnd::budget_spent:
      case SearchEnd::everything_searched:
        trial.reason = "not compiled: the time budget was spent";
        break;
    }
    rejected_.push_back(std::move(trial));
  }
}

void Exploration::report(TuningPhase phase, int done, int total) const {
  const double best_us = std::isfinite(race_.best_us()) ? race_.best_us() : 0;
  if (options_.on_progress) options_.on_progress({.phase = phase, .done = done, .total = total, .best_us = best_us});
}

const CompiledCode& Exploration::code_of(const Candidate& candidate) const {
  return *std::find_if(code_.begin(), code_.end(),
                       [&](const CompiledCode& code) { return code.compiled.variant == candidate.variant; });
}

}  // namespace hone
