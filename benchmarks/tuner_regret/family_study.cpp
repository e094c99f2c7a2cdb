#include "benchmarks/tuner_regret/family_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <hone/hone.h>
#include <hone/kernel_family.h>
#include <hone/sdk/family_table.h>

#include "benchmarks/common/family_problems.h"
#include "benchmarks/tuner_regret/cache_folder.h"
#include "benchmarks/tuner_regret/findings.h"
#include "benchmarks/tuner_regret/judge.h"

namespace hone::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// This share of the time is for measuring choices side by side.
constexpr double kJudgingShare = 0.3;
/// A process measures in so much of that; the rest is for starting, compiling and filling memory.
constexpr double kComparingShare = 0.6;
constexpr int kLeastCompareMs = 50;

constexpr std::size_t kBatch = 32;  ///< policies that are measured with each other, between looks at the clock

constexpr std::size_t kRivals = 5;     ///< the fastest of the sample, since the times of some are luck
constexpr std::size_t kOwnRivals = 2;  ///< the fastest that the tuning measured, likewise

/// The outcome of a space's sample.
struct Sample {
  std::vector<Trial> trials;  ///< that were measured
  std::size_t policies = 0;   ///< that are valid
  std::size_t tried = 0;
};

/// The problems of each round: one of each family, in both contexts.
std::vector<std::vector<Problem>> rounds_of(const RegretOptions& options) {
  std::map<const KernelFamily*, int> seen;
  std::vector<std::vector<Problem>> rounds(static_cast<std::size_t>(options.problems));
  for (Problem problem : family_problems(options.is_small)) {
    const auto& names = options.families;
    if (!names.empty() && std::find(names.begin(), names.end(), problem.family->name()) == names.end()) continue;
    const auto round = static_cast<std::size_t>(seen[problem.family]++);
    if (round >= rounds.size()) continue;
    for (const LaunchContext context : {LaunchContext::stream, LaunchContext::graph}) {
      problem.launch_context = context;
      rounds[round].push_back(problem);
    }
  }
  std::erase_if(rounds, [](const std::vector<Problem>& round) { return round.empty(); });
  return rounds;
}

void require_families(const std::vector<std::string>& names) {
  std::string known;
  for (const FamilyRow& row : built_in_families()) known += fmt::format(" {}", row.family().name());
  for (const std::string& name : names)
    if ((known + ' ').find(' ' + name + ' ') == std::string::npos)
      throw Error(ErrorCode::not_found, fmt::format("no family '{}'; there are:{}", name, known));
}

class FamilyStudy {
 public:
  explicit FamilyStudy(const RegretOptions& options)
      : options_(options),
        device_(Device::open(options.device)),
        session_(device_, {.on_miss = MissPolicy::error, .cache_path = ""}) {}

  bool run() {
    const std::vector<std::vector<Problem>> rounds = rounds_of(options_);
    const Clock::time_point end = Clock::now() + std::chrono::seconds(options_.seconds);
    for (std::size_t i = 0; i < rounds.size() && !is_lost_; ++i) {
      const Clock::duration time = (end - Clock::now()) / static_cast<std::ptrdiff_t>(rounds.size() - i);
      study_round(rounds[i], time);
      write_findings(options_.out, device_->facts(), findings_, {});
    }
    fmt::print("\n{}", to_table(findings_, {}));
    return is_good_;
  }

 private:
  void study_round(const std::vector<Problem>& problems, Clock::duration time) {
    const auto share = [&](double of_time) { return std::chrono::duration_cast<Clock::duration>(time * of_time); };
    const Clock::time_point end = Clock::now() + share(1 - kJudgingShare);
    for (std::size_t i = 0; i < problems.size() && !is_lost_; ++i) {
      const Clock::time_point now = Clock::now();
      if (now < end) {
        study(problems[i], now + (end - now) / static_cast<std::ptrdiff_t>(problems.size() - i));
        continue;
      }
      fmt::print(stderr, "the time is over: {} is left out\n", to_string(problems[i]));
      is_good_ = false;
    }
    judge_round(share(kJudgingShare * kComparingShare));
  }

  void study(const Problem& problem, Clock::time_point end) try {
    TuningOptions options;
    options.budget = milliseconds(options_.budget_ms);
    const Tuning tuning = session_.tune(problem, options);
    if (!tuning.winner) throw Error(ErrorCode::device_failed, "no candidate works");
    const Sample sample = take_sample(problem, end);
    const Candidate& choice = tuning.trials[*tuning.winner].candidate;
    Rivalry rivalry{.problem = problem, .candidates = {choice}};
    add_fastest(sample.trials, kRivals, rivalry.candidates);
    add_fastest(tuning.trials, kOwnRivals, rivalry.candidates);
    const double listed = static_cast<double>(sample.trials.size()) * static_cast<double>(sample.policies) /
                          static_cast<double>(std::max<std::size_t>(sample.tried, 1));
    findings_.push_back({.part = "families",
                         .problem = to_string(problem),
                         .chosen = text_of(problem, choice),
                         .reference = text_of(problem, choice),
                         .measured = static_cast<int>(std::count_if(
                             tuning.trials.begin(), tuning.trials.end(),
                             [](const Trial& trial) { return trial.verdict == Verdict::ok; })),
                         .candidates = static_cast<int>(std::lround(listed)),
                         .policies = static_cast<int>(sample.policies),
                         .tried = static_cast<int>(sample.tried)});
    rivalries_.push_back(std::move(rivalry));
    fmt::print("{}: {} candidates tuned, {} of {} policies measured\n", findings_.back().problem,
               findings_.back().measured, sample.tried, sample.policies);
    std::fflush(stdout);
  } catch (const Error& error) {
    fmt::print(stderr, "{}: {}\n", to_string(problem), error.what());
    is_good_ = false;
    is_lost_ = error.code() == ErrorCode::device_lost;  // what was found is judged in processes of their own
  }

  /// Measures valid policies in random order, each with all of its grids, until `end`.
  Sample take_sample(const Problem& problem, Clock::time_point end) {
    std::vector<Policy> policies = problem.family->space().all();
    std::erase_if(policies, [&](const Policy& policy) {
      return !problem.family->is_valid(problem, policy, device_->facts()).empty();
    });
    std::shuffle(policies.begin(), policies.end(), std::mt19937(1));  // the same sample in every run of a device
    Sample sample{.trials = {}, .policies = policies.size()};
    while (sample.tried < policies.size()) {
      const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
      if (left <= milliseconds::zero()) break;
      TuningOptions options;
      options.budget = left;
      options.verify = false;  // the fastest are verified when they are judged
      const std::size_t batch_end = std::min(sample.tried + kBatch, policies.size());
      for (std::size_t i = sample.tried; i < batch_end; ++i) options.only.push_back({policies[i], {}});
      const Tuning tuning = session_.compare(problem, options);
      std::vector<Policy> measured;
      for (const Trial& trial : tuning.trials) {
        if (trial.verdict != Verdict::ok) continue;
        sample.trials.push_back(trial);
        if (std::find(measured.begin(), measured.end(), trial.candidate.policy) == measured.end())
          measured.push_back(trial.candidate.policy);
      }
      sample.tried = tuning.budget_spent ? sample.tried + measured.size() : batch_end;
      if (tuning.budget_spent) break;
    }
    return sample;
  }

  static void add_fastest(std::vector<Trial> trials, std::size_t most, std::vector<Candidate>& candidates) {
    std::erase_if(trials, [](const Trial& trial) { return trial.verdict != Verdict::ok; });
    std::sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) { return a.median_us < b.median_us; });
    for (std::size_t i = 0; i < trials.size() && most > 0; ++i) {
      if (std::find(candidates.begin(), candidates.end(), trials[i].candidate) != candidates.end()) continue;
      candidates.push_back(trials[i].candidate);
      --most;
    }
  }

  /// Judges what has not been.
  void judge_round(Clock::duration time) {
    if (rivalries_.empty()) return;
    const auto ms = std::chrono::duration_cast<milliseconds>(time).count();
    const auto comparisons = static_cast<std::int64_t>(rivalries_.size()) * options_.compare_processes;
    RegretOptions options = options_;
    options.compare_ms = static_cast<int>(std::max<std::int64_t>(kLeastCompareMs, ms / comparisons));
    const CacheFolder folder("", "");
    const std::vector<Verdicts> verdicts =
        judge(rivalries_, judge_command(options, *device_), options_.compare_processes, folder.path());
    const std::size_t first = findings_.size() - rivalries_.size();
    for (std::size_t i = 0; i < rivalries_.size(); ++i)
      is_good_ = conclude(rivalries_[i], verdicts[i], findings_[first + i]) && is_good_;
    rivalries_.clear();
  }

  const RegretOptions& options_;
  std::shared_ptr<Device> device_;
  Session session_;
  std::vector<Finding> findings_;
  std::vector<Rivalry> rivalries_;  ///< of the last findings, which are yet to be judged
  bool is_good_ = true;             ///< whether every problem was studied and every comparison succeeded
  bool is_lost_ = false;            ///< whether nothing runs on the device any more
};

}  // namespace

bool study_families(const RegretOptions& options) {
  require_families(options.families);
  return FamilyStudy(options).run();
}

}  // namespace hone::benchmarks
