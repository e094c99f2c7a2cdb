#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/choose/choose.h"
#include "runtime/choose/compiled.h"
#include "runtime/measure/race.h"
#include "runtime/measure/statistics.h"
#include "runtime/measure/workload.h"
#include "runtime/search/candidates.h"

namespace hone {
namespace {

/// Compiling may take the first share of the budget, and first samples may be taken until the second; the rest is for
/// telling the best apart.
constexpr double kCompileShare = 0.4;
constexpr double kQualifyingShare = 0.75;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// A stream for as long as the tuning takes.
class OwnStream {
 public:
  explicit OwnStream(Device& device) : device_(device), stream_(device.create_stream()) {}
  ~OwnStream() { device_.destroy_stream(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  Stream get() const { return stream_; }

 private:
  Device& device_;
  Stream stream_;
};

/// What a candidate occupies: of two that are equally fast, the smaller one leaves more room to others.
std::int64_t footprint(const Trial& trial, const Problem& problem) {
  const int threads = problem.family->shape(problem, trial.candidate.variant).block_threads;
  return trial.candidate.geometry.max_blocks * threads * std::max(trial.resources.registers, 1);
}

/// Measured ones by how long they stayed in the race, then by time; then the others by verdict. Medians compare only
/// among those that were sampled side by side: one that was dropped may have had the better clock until then.
bool best_first(const Trial& a, const Trial& b) {
  if (a.verdict != b.verdict) return a.verdict < b.verdict;
  if (a.verdict != Verdict::ok) return false;
  return a.samples != b.samples ? a.samples > b.samples : a.median_us < b.median_us;
}

Estimate estimate_of(const Trial& trial) { return {trial.median_us, trial.spread_us, trial.samples}; }

/// One tuning from variants to winner; the steps are called in order by run().
class TuningRun {
 public:
  TuningRun(const std::shared_ptr<Device>& device, const Problem& problem, const TuningOptions& options,
            BinaryMemo& memo)
      : device_(device), problem_(problem), options_(options), memo_(memo) {
    tuning_.problem = problem;
  }

  Tuning run() {
    compile();
    measure();
    tuning_.stopped = options_.stop.stop_requested();
    const std::optional<Candidate> winner = tuning_.stopped ? std::nullopt : choose();
    std::stable_sort(tuning_.trials.begin(), tuning_.trials.end(), best_first);
    for (std::size_t i = 0; winner && i < tuning_.trials.size(); ++i) {
      if (tuning_.trials[i].candidate != *winner) continue;
      tuning_.winner = i;
      tuning_.winner_binary = code_of(*winner).binary;
      break;
    }
    tuning_.measure_ms = ms_since(start_) - tuning_.compile_ms;
    return std::move(tuning_);
  }

 private:
  void report(TuningPhase phase, int done, int total, double best_us) const {
    if (options_.on_progress) options_.on_progress({.phase = phase, .done = done, .total = total, .best_us = best_us});
  }

  Clock::time_point after(double share) const {
    return start_ + std::chrono::duration_cast<Clock::duration>(options_.budget * share);
  }

  void compile() {
    VariantRanking ranking = rank_variants(device_->facts(), problem_);
    tuning_.trials = std::move(ranking.rejected);

    std::vector<Unit> units;
    for (const RankedVariant& ranked : ranking.variants) units.push_back(unit_of(problem_, ranked.variant));
    const auto on_progress = [&](int done, int total) { report(TuningPhase::compiling, done, total, 0); };
    std::vector<CompileOutcome> outcomes =
        memo_.compile(*device_, units, options_.stop, on_progress, after(kCompileShare));
    for (std::size_t i = 0; i < units.size(); ++i)
      if (outcomes[i].started()) load(ranking.variants[i], units[i], outcomes[i]);
    // However small the budget is, something is measured.
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (outcomes[i].started()) continue;
      if (!options_.stop.stop_requested() && candidates().candidates.empty())
        outcomes[i] = memo_.compile(*device_, std::span(units).subspan(i, 1)).front();
      load(ranking.variants[i], units[i], outcomes[i]);
    }
    tuning_.compile_ms = ms_since(start_);
  }

  void load(const RankedVariant& ranked, const Unit& unit, const CompileOutcome& outcome) {
    Trial trial{.candidate = {ranked.variant, {}}, .predicted_us = ranked.predicted_us};
    if (outcome.binary) {
      try {
        code_.push_back(load_variant(*device_, problem_, ranked.variant, unit, outcome.binary));
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
      tuning_.budget_spent = true;
    }
    tuning_.trials.push_back(std::move(trial));
  }

  CandidateList candidates() const {
    std::vector<CompiledVariant> variants;
    for (const CompiledCode& code : code_) variants.push_back(code.compiled);
    return list_candidates(device_->facts(), problem_, variants, options_.workspace_bytes);
  }

  const CompiledCode& code_of(const Candidate& candidate) const {
    return *std::find_if(code_.begin(), code_.end(),
                         [&](const CompiledCode& code) { return code.compiled.variant == candidate.variant; });
  }

  /// The candidate that the model would have chosen: the best of the highest-ranked variant that has any.
  void mark_default(std::vector<Trial>& candidates) const {
    for (const CompiledCode& code : code_) {
      const auto first = std::find_if(candidates.begin(), candidates.end(), [&](const Trial& trial) {
        return trial.candidate.variant == code.compiled.variant;
      });
      if (first == candidates.end()) continue;
      first->is_default = true;
      std::rotate(candidates.begin(), first, first + 1);  // it is measured whatever the budget
      return;
    }
  }

  void measure() {
    CandidateList list = candidates();
    mark_default(list.candidates);
    if (!list.candidates.empty()) {
      workload_.fill_all();
      device_->fill_bytes(workspace_.data(), 0, workspace_.size_bytes(), stream_.get());
    }

    std::vector<Contender> contenders;
    for (Trial& trial : list.candidates)
      contenders.push_back({.trial = &trial, .loaded = {trial.candidate, code_of(trial.candidate).module}});
    const RaceLimits limits{
        .qualifying_deadline = after(kQualifyingShare), .deadline = after(1), .stop = options_.stop};
    Race({*device_, problem_, workload_, workspace_.data(), stream_.get()})
        .run(contenders, limits, [&](int done, double best_us) {
          report(TuningPhase::measuring, done, static_cast<int>(contenders.size()), best_us);
        });
    tuning_.budget_spent |= Clock::now() >= limits.qualifying_deadline;
    tuning_.trials.insert(tuning_.trials.end(), list.candidates.begin(), list.candidates.end());
    tuning_.trials.insert(tuning_.trials.end(), list.rejected.begin(), list.rejected.end());
  }

  /// The fastest trial that is right; among those that cannot be told apart, the one with the smallest footprint.
  std::optional<Candidate> choose() {
    std::vector<Trial>& trials = tuning_.trials;
    while (true) {
      const auto best = std::min_element(trials.begin(), trials.end(), best_first);
      if (best == trials.end() || best->verdict != Verdict::ok) return std::nullopt;
      auto chosen = best;
      for (auto trial = trials.begin(); trial != trials.end(); ++trial)
        if (trial->verdict == Verdict::ok && trial->samples == best->samples &&
            indistinguishable(estimate_of(*best), estimate_of(*trial)) &&
            footprint(*trial, problem_) < footprint(*chosen, problem_))
          chosen = trial;
      report(TuningPhase::verifying, 0, 1, chosen->median_us);
      if (verified(*chosen)) return chosen->candidate;
    }
  }

  /// Runs the candidate on every kind of input, at the problem's size and one below, and records what was wrong.
  bool verified(Trial& trial) {
    const LoadedCandidate loaded{trial.candidate, code_of(trial.candidate).module};
    Problem smaller = problem_;
    smaller.extents[0] = std::max<std::int64_t>(0, problem_.extents[0] - 1);
    try {
      for (const Problem& problem : {problem_, smaller}) {
        if (!problem_.family->refuse(problem).empty()) continue;
        for (std::string_view kind : problem_.family->input_kinds(problem)) {
          std::string fault = workload_.verify(
              problem, trial.candidate, kind, [&](const Problem& called, std::span<void* const> buffers) {
                loaded.enqueue(*device_, called, buffers, workspace_.data(), stream_.get());
              });
          if (fault.empty()) continue;
          trial.verdict = Verdict::wrong;
          trial.reason = fmt::format("{} on {} input: {}", to_string(problem), kind, fault);
          return false;
        }
      }
    } catch (const Error& error) {
      trial.verdict = Verdict::failed;
      trial.reason = error.what();
      return false;
    }
    return true;
  }

  const std::shared_ptr<Device>& device_;
  const Problem& problem_;
  const TuningOptions& options_;
  BinaryMemo& memo_;
  Tuning tuning_;
  Clock::time_point start_ = Clock::now();
  OwnStream stream_{*device_};
  Workload workload_{device_, problem_, stream_.get()};
  DeviceBuffer workspace_{device_, options_.workspace_bytes};
  std::vector<CompiledCode> code_;
};

}  // namespace

Tuning choose_by_measuring(const std::shared_ptr<Device>& device, const Problem& problem, const TuningOptions& options,
                           BinaryMemo& memo) {
  require_accepted(problem);
  return TuningRun(device, problem, options, memo).run();
}

Tuning tune(const std::shared_ptr<Device>& device, const Problem& problem, const TuningOptions& options) {
  BinaryMemo memo;
  return choose_by_measuring(device, problem, options, memo);
}

}  // namespace hone
