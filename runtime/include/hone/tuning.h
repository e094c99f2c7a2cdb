// tune(): finds the winner of a problem, and keeps every trial as evidence.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <hone/candidate.h>
#include <hone/device.h>
#include <hone/kernel_family.h>

namespace hone {

/// The part of a tuning that is going on.
enum class TuningPhase { compiling, measuring, verifying };

/// The progress of a tuning, reported from the thread that called tune().
struct TuningProgress {
  TuningPhase phase = TuningPhase::compiling;
  int done = 0;          ///< of `total` in this phase
  int total = 0;
  double best_us = 0;    ///< 0 before the first measurement
};

/// The winner has the least of this.
enum class Objective : std::uint8_t {
  time,
  energy,  ///< of one call, by the device's counter (Device::energy()): of the whole device, idle power included
};

inline constexpr std::array<std::string_view, 2> kObjectiveNames{"time", "energy"};
constexpr std::string_view name(Objective objective) { return kObjectiveNames[static_cast<std::size_t>(objective)]; }

/// The place of the inputs when a timed call begins.
enum class InputState : std::uint8_t {
  cold,  ///< in device memory: calls rotate through so many copies that each is displaced from the last-level cache
  warm,  ///< in the last-level cache, as far as they fit: every call reads the same input
};

/// The reason why a tuning measured no further candidates.
enum class SearchEnd : std::uint8_t {
  everything_searched,   ///< all candidates were measured
  rest_expected_slower,  ///< the rest is not expected to improve on the leader, by the model and the surrogate
  near_roofline,         ///< the leader is as fast as memory bandwidth and launch cost allow
  budget_spent,
  stopped,
};

inline constexpr std::array<std::string_view, 5> kSearchEndNames{
    "everything was searched", "the rest is expected to be slower", "the leader is as fast as memory allows",
    "the budget was spent", "it was stopped"};
constexpr std::string_view name(SearchEnd end) { return kSearchEndNames[static_cast<std::size_t>(end)]; }

/// A candidate that must not run again, and the reason. A geometry of 0 blocks excludes the policy with any geometry.
struct ExcludedCandidate {
  Candidate candidate;
  std::string reason;
};

struct TuningOptions {
  /// The wall-clock time to spend. Candidates that are not measured by then are recorded as rejected. The model's first
  /// choice is always compiled, measured and verified. Verifying the winner may take a quarter of the budget more; the
  /// checks that are left then run on small problems.
  std::chrono::milliseconds budget{2000};

  /// The bytes of workspace that a candidate may need; others are rejected.
  std::size_t workspace_bytes = kWorkspaceBytes;

  /// The assumption about the inputs. It is no part of a Problem, because a call cannot know what is in the cache.
  /// Choose `warm` if calls follow the kernel that wrote their input, and the input fits the last-level cache.
  InputState inputs = InputState::cold;

  /// The search seeks the least of this. For energy, the search by time comes first; then the energy of the fastest few
  /// is measured, up to six that take at most a quarter longer than the fastest, for about two seconds each, which the
  /// budget does not include. A Session replaces this by SessionOptions::objective.
  Objective objective = Objective::time;

  /// Measure every candidate that was not pruned, as far as the budget goes, whatever the model predicts.
  bool measure_all = false;

  /// Measure every candidate of every valid policy, as far as the budget goes: nothing is pruned.
  bool exhaustive = false;

  /// The winners of neighbouring problems. Their policies are measured first, and they win ties.
  std::vector<Candidate> start_from = {};

  /// Trials of a neighbouring problem, from which the search learns the errors of the model.
  std::vector<Trial> nearby = {};

  /// If not empty, only these candidates are measured, side by side, those of `start_from` first. A geometry of 0
  /// blocks stands for every grid of its policy.
  std::vector<Candidate> only = {};

  /// Verify the winner. Without it, the winner is merely the fastest.
  bool verify = true;

  /// Candidates that are never run, but recorded as failed with their reasons: those that hung or killed a process.
  std::vector<ExcludedCandidate> excluded = {};

  /// Called right before a candidate runs, from the thread that called tune(), so that a candidate that kills or hangs
  /// the process is known. It is called before every sample, must be quick, and must not call the session.
  std::function<void(const Candidate&)> on_run = {};

  /// The problems that will be tuned next, in this order. On a GPU their first policies are compiled while this problem
  /// is measured, and that may go on after tune() has returned. Without them, nothing is being compiled when tune()
  /// returns.
  std::vector<Problem> next = {};

  std::stop_token stop = {};  ///< ends the tuning early, without a winner
  /// Called from the thread that called tune(). Must not call the session: what would wait for the tuning throws
  /// Error(invalid_argument).
  std::function<void(const TuningProgress&)> on_progress = {};
};

/// The result of a tuning.
struct Tuning {
  Problem problem;
  std::vector<Trial> trials;  ///< best first, then by verdict; policies not compiled are one trial for each reason
  std::optional<std::size_t> winner;  ///< index into trials; empty if stopped, or if no candidate worked
  std::shared_ptr<const Binary> winner_binary;
  double compile_ms = 0;  ///< of waiting for the compiler
  double measure_ms = 0;  ///< with verifying
  double verify_ms = 0;
  bool budget_spent = false;
  bool stopped = false;
  bool has_compiled = false;  ///< true if any policy compiled
  SearchEnd search_end = SearchEnd::everything_searched;
  Objective objective = Objective::time;
  double power_limit_w = 0;     ///< that the device enforced while energy was measured; 0: it was not
  double rank_correlation = 0;  ///< Spearman's, of predicted with measured times; 0 with fewer than two
  double roofline_us = 0;       ///< lower bound from bandwidth and launch cost; 0: the bandwidth is not known
  int discarded_samples = 0;    ///< samples discarded because the device was throttled or shared

  /// True if candidates were compared; false if the budget allowed for one candidate only.
  bool has_compared() const {
    const auto is_ok = [](const Trial& trial) { return trial.verdict == Verdict::ok; };
    return !budget_spent || std::count_if(trials.begin(), trials.end(), is_ok) > 1;
  }
};

/// Measures candidates for `problem` on `device` and picks the fastest one that verifies. Uses streams and memory of
/// its own, and stores nothing. A candidate that fails is a Trial. Throws Error: invalid_argument if the family refuses
/// the problem, unsupported if energy is sought and the device has no counter, out_of_memory if the inputs do not fit,
/// device_lost if the device does not work any more after a
/// candidate.
Tuning tune(const std::shared_ptr<Device>& device, const Problem& problem, const TuningOptions& options);

}  // namespace hone
