#include <algorithm>
#include <chrono>
#include <deque>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/own_stream.h>

#include "runtime/choose/choose.h"
#include "runtime/choose/exploration.h"
#include "runtime/choose/final_choice.h"
#include "runtime/choose/reference.h"
#include "runtime/choose/result_checks.h"
#include "runtime/measure/energy.h"
#include "runtime/measure/race.h"
#include "runtime/measure/workload.h"
#include "runtime/search/model.h"
#include "runtime/trace/trace_range.h"

namespace hone {
namespace {

/// Compiling may take the first share of the budget, and first samples may be taken until the second; the rest is for
/// telling the best apart.
constexpr double kCompileShare = 0.4;
constexpr double kQualifyingShare = 0.75;

/// One part in so many of the budget is for verifying when all of it was used for measuring.
constexpr int kVerifyingPart = 4;

/// One tuning from policies to winner; the steps are called in order by run().
class TuningRun {
 public:
  TuningRun(const std::shared_ptr<Device>& device, const Problem& problem, const TuningOptions& options,
            BinaryMemo& memo)
      : device_(device),
        problem_(problem),
        options_(options),
        memo_(memo),
        exploration_(*device, problem, options, memo, race_, after(kCompileShare), after(kQualifyingShare)) {
    tuning_.problem = problem;
  }

  /// Waits for the device: whatever ended the run, memory, graphs and code may still be in use.
  ~TuningRun() {
    try {
      device_->synchronize(stream_.get());
    } catch (...) {
      // The device has failed: nothing uses them any more.
    }
  }
  TuningRun(const TuningRun&) = delete;
  TuningRun& operator=(const TuningRun&) = delete;

  Tuning run() {
    // First, since what does not compile here compiles in no policy.
    if (problem_.family->verifier().has_reference_kernel()) reference_ = load_reference(*device_, problem_, memo_);
    if (reference_ && options_.verify) require_reference_not_excluded();
    if (reference_ && options_.verify) require_one_result(device_, problem_, *reference_, stream_.get());
    measure();
    tuning_.stopped = options_.stop.stop_requested();
    const Clock::time_point measured = Clock::now();
    const Trial* const winner = tuning_.stopped ? nullptr : choose();
    tuning_.verify_ms = ms_since(measured);
    if (winner) tuning_.winner_binary = exploration_.code_of(winner->candidate).binary;
    keep_records(winner);
    return std::move(tuning_);
  }

 private:
  Clock::time_point after(double share) const {
    return start_ + std::chrono::duration_cast<Clock::duration>(options_.budget * share);
  }

  /// A reference that hung or ended its process would do so again, and others would be blamed for it.
  void require_reference_not_excluded() const {
    const Unit reference = problem_.family->verifier().reference_unit(problem_);
    for (const ExcludedCandidate& out : options_.excluded)
      if (problem_.family->unit(problem_, out.candidate.policy).has_code_of(reference))
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the policy {} is the reference, and ended badly: {}; no policy can be verified "
                                "without it: correct the kernel, or give it another reference",
                                problem_.family->space().to_string(out.candidate.policy), out.reason));
  }

  void measure() {
    const TraceRange traced([&] { return "measure " + to_string(problem_); });
    workload_.fill_all();
    exploration_.run();
    for (Contender* const finalist : race_.finish({.deadline = after(1), .stop = options_.stop}))
      finalists_.push_back(&finalist->trial);
    for (Contender& contender : exploration_.contenders()) recall_default(contender.trial, finalists_);
    if (options_.objective == Objective::energy) measure_energy();
  }

  /// The finalists are then those whose energy is known, the best first. The time that it takes is no part of the
  /// budget.
  void measure_energy() {
    const Clock::time_point start = Clock::now();
    std::vector<Contender*> contenders;
    for (Contender& contender : exploration_.contenders()) contenders.push_back(&contender);
    finalists_.clear();
    for (Contender* const contender : rank_by_energy(bench_, contenders, options_.stop))
      finalists_.push_back(&contender->trial);
    tuning_.power_limit_w = device_->energy().power_limit_w;
    start_ += Clock::now() - start;
    energy_ms_ = ms_since(start);
  }

  /// Moves all trials into the tuning, best first.
  void keep_records(const Trial* winner) {
    std::optional<Candidate> chosen;
    if (winner) chosen = winner->candidate;
    int measured = 0;
    for (Contender& contender : exploration_.contenders()) {  // in the order of measuring
      if (contender.trial.samples > 0) contender.trial.sequence = ++measured;
      tuning_.trials.push_back(std::move(contender.trial));
    }
    std::move(exploration_.rejected().begin(), exploration_.rejected().end(), std::back_inserter(tuning_.trials));
    std::stable_sort(tuning_.trials.begin(), tuning_.trials.end(), is_better);
    for (std::size_t i = 0; chosen && i < tuning_.trials.size() && !tuning_.winner; ++i)
      if (tuning_.trials[i].candidate == *chosen) tuning_.winner = i;
    tuning_.compile_ms = exploration_.compile_ms();
    tuning_.measure_ms = ms_since(start_) + energy_ms_ - tuning_.compile_ms;
    tuning_.objective = options_.objective;
    tuning_.has_compiled = exploration_.has_compiled();
    tuning_.search_end = exploration_.end();
    tuning_.budget_spent = exploration_.budget_spent() || Clock::now() >= after(1);
    tuning_.rank_correlation = rank_correlation_of(tuning_.trials);
    tuning_.roofline_us = roofline_us(device_->facts(), limits_, problem_, options_.inputs);
    tuning_.discarded_samples = race_.discarded_samples();
  }

  /// The fastest candidate that is right.
  const Trial* choose() {
    while (Trial* const chosen = best_left()) {
      const auto report = [&](int done) {
        if (options_.on_progress)
          options_.on_progress(
              {.phase = TuningPhase::verifying, .done = done, .total = 1, .best_us = chosen->median_us});
      };
      report(0);
      if (!options_.verify || verified(*chosen)) {
        report(1);
        return chosen;
      }
      std::erase(finalists_, chosen);
    }
    return nullptr;
  }

  /// The winner of the finalists' tie; when every one of them was wrong, whoever stayed in the race longest. Of energy
  /// nothing is known of the others.
  Trial* best_left() {
    if (options_.objective == Objective::energy) return finalists_.empty() ? nullptr : finalists_.front();
    if (!finalists_.empty()) return winner_of_tie(finalists_, problem_, options_.start_from);
    std::deque<Contender>& all = exploration_.contenders();
    const auto best = std::min_element(
        all.begin(), all.end(), [](const Contender& a, const Contender& b) { return is_better(a.trial, b.trial); });
    return best == all.end() || best->trial.verdict != Verdict::ok ? nullptr : &best->trial;
  }

  /// Runs the candidate on every kind of input and records what was wrong. Where that takes longer than it may, the
  /// checks that are left are of small problems.
  bool verified(Trial& trial) {
    const TraceRange traced([&] {
      return fmt::format("verify {}: {}", to_string(problem_),
                         problem_.family->space().to_string(trial.candidate.policy));
    });
    const LoadedCandidate loaded{trial.candidate, exploration_.code_of(trial.candidate).module};
    const auto run = [&](const Problem& called, std::span<void* const> buffers) {
      if (bench_.on_run) bench_.on_run(trial.candidate);
      loaded.enqueue(*device_, called, buffers, workspaces_.of_turn(0), stream_.get());
    };
    const Clock::time_point end = std::max(after(1), Clock::now() + options_.budget / kVerifyingPart);
    bool is_late = false;
    try {
      const Workload::Run reference = reference_run();
      const Unit unit = problem_.family->unit(problem_, trial.candidate.policy);
      for (const auto& [asked, kind] : result_checks(problem_, trial.candidate.policy, unit)) {
        const Problem problem = is_late ? small_problem(device_->facts(), asked, trial.candidate.policy) : asked;
        const std::string fault = workload_.verify(problem, trial.candidate, kind, run, reference);
        is_late = Clock::now() >= end;
        if (fault.empty()) continue;
        trial.verdict = Verdict::wrong;
        trial.reason = {ReasonCode::wrong_result, fmt::format("{} on {} input: {}", to_string(problem), kind, fault)};
        return false;
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::invalid_argument) throw;  // the caller's reference, and not the candidate, failed
      trial.verdict = Verdict::failed;
      trial.reason = {ReasonCode::does_not_run, error.what()};
      bench_.require_alive(trial.candidate, error);
      return false;
    }
    return true;
  }

  /// Launches the family's reference kernel; empty where it has none.
  Workload::Run reference_run() {
    if (!reference_) return {};
    return [this](const Problem& called, std::span<void* const> buffers) {
      try {
        enqueue_reference(*device_, *reference_, called, 0, buffers, stream_.get());
        device_->synchronize(stream_.get());
      } catch (const Error& error) {
        if (error.code() != ErrorCode::device_failed) throw;
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the reference, which is the default policy unless another one is given, failed: {}",
                                error.what()));
      }
    };
  }

  const std::shared_ptr<Device>& device_;
  const Problem& problem_;
  const TuningOptions& options_;
  BinaryMemo& memo_;
  std::shared_ptr<const Module> reference_;
  Tuning tuning_;
  Clock::time_point start_ = Clock::now();
  double energy_ms_ = 0;
  const DeviceLimits limits_ = device_->limits();
  OwnStream stream_{*device_};
  Workload workload_{device_, problem_, stream_.get(), options_.inputs, options_.budget};
  Workspaces workspaces_{device_, options_.workspace_bytes, stream_.get()};
  const Bench bench_{*device_,
                     problem_,
                     workload_,
                     workspaces_,
                     stream_.get(),
                     options_.on_run,
                     host_pace_us(device_->facts(), limits_, problem_)};
  Race race_{bench_};
  Exploration exploration_;
  std::vector<Trial*> finalists_;  ///< that are not known to be wrong
};

}  // namespace

Tuning choose_by_measuring(const std::shared_ptr<Device>& device, const Problem& problem, const TuningOptions& options,
                           BinaryMemo& memo) {
  require_accepted(problem);
  if (options.objective == Objective::energy) require_energy_counter(*device);
  start_tracing();
  const Clock::time_point start = Clock::now();
  Tuning tuning = TuningRun(device, problem, options, memo).run();
  // Now, since it takes a compiler's time, which is none of the budget, and since orders that disagree say more.
  if (options.verify && tuning.winner && problem.family->verifier().has_reference_kernel()) require_laws(problem);
  const auto has = [&](Verdict verdict) {
    return std::any_of(tuning.trials.begin(), tuning.trials.end(),
                       [&](const Trial& trial) { return trial.verdict == verdict; });
  };
  const bool was_misled = has(Verdict::wrong);
  const bool was_pruned = tuning.has_compiled && !was_misled && !has(Verdict::ok) && !has(Verdict::failed);
  const bool is_thorough = options.exhaustive || !options.only.empty() || (options.measure_all && !was_pruned);
  if (is_thorough || tuning.stopped || !(was_misled || was_pruned)) return tuning;

  // A leader that gave a wrong result may have kept slower, right ones from being measured: now all of them are, in
  // what is left of the budget. And where opinion left nothing to measure, opinion was wrong.
  TuningOptions again = options;
  again.measure_all = true;
  again.exhaustive = was_pruned;
  again.budget = std::max(std::chrono::milliseconds::zero(),
                          options.budget - std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start));
  Tuning thorough = TuningRun(device, problem, again, memo).run();
  thorough.compile_ms += tuning.compile_ms;
  thorough.measure_ms += tuning.measure_ms;
  thorough.verify_ms += tuning.verify_ms;
  return thorough.winner || !tuning.winner ? thorough : tuning;
}

Tuning tune(const std::shared_ptr<Device>& device, const Problem& problem, const TuningOptions& options) {
  BinaryMemo memo;
  return choose_by_measuring(device, problem, options, memo);
}

}  // namespace hone
