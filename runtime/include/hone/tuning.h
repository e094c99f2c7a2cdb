// tune(): from a problem to a winner, with every trial kept as evidence.
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

enum class TuningPhase { compiling, measuring, verifying };

/// Where a tuning stands. Reported from the thread that called tune().
struct TuningProgress {
  TuningPhase phase = TuningPhase::compiling;
  int done = 0;          ///< of `total` in this phase
  int total = 0;
  double best_us = 0;    ///< 0 before the first measurement
};

/// Where the inputs are when a timed call begins.
enum class InputState : std::uint8_t {
  cold,  ///< in device memory: as many copies take turns as displace the last-level cache
  warm,  ///< in the last-level cache, as far as they fit: every call reads what the one before it read
};

/// Why a tuning measured no further candidates.
enum class SearchEnd : std::uint8_t {
  everything_searched,   ///< there are no more
  rest_expected_slower,  ///< by the model, put right by what was measured, the rest will not improve on the leader
  near_roofline,         ///< the leader is as fast as memory and launching allow
  budget_spent,
  stopped,
};

inline constexpr std::array<std::string_view, 5> kSearchEndNames{
    "everything was searched", "the rest is expected to be slower", "the leader is as fast as memory allows",
    "the budget was spent", "it was stopped"};
constexpr std::string_view name(SearchEnd end) { return kSearchEndNames[static_cast<std::size_t>(end)]; }

/// A candidate that must not be run again, and why. With a geometry of 0 blocks: the policy with any geometry.
struct ExcludedCandidate {
  Candidate candidate;
  std::string reason;
};

struct TuningOptions {
  /// Wall-clock time to spend. What is not measured by then is recorded as rejected. At least the model's first choice
  /// is always compiled, measured and verified; verifying the winner may take a quarter of the budget besides, and then
  /// goes on with small problems.
  std::chrono::milliseconds budget{2000};

  /// Candidates that need more workspace than this are rejected.
  std::size_t workspace_bytes = kWorkspaceBytes;

  /// What is assumed of the inputs. No part of a Problem: a call cannot know what is in the cache, so a winner could
  /// not be looked up by it. Choose `warm` where calls follow the kernel that made their input and it fits the cache.
  InputState inputs = InputState::cold;

  /// Measure every candidate, as far as the budget goes, whatever the model predicts.
  bool measure_all = false;

  /// The same, of every valid policy: nothing is pruned, and no candidate is left out for what it is expected to take.
  bool exhaustive = false;

  /// Candidates that won neighbouring problems: their policies are measured first, and they win ties.
  std::vector<Candidate> start_from = {};

  /// What was measured on a neighbouring problem: the model is expected to be wrong about this one in the same way.
  std::vector<Trial> nearby = {};

  /// Not empty: these are measured side by side, and no others.
  std::vector<Candidate> only = {};

  /// Whether the winner must give the right result. Without, it is merely the fastest.
  bool verify = true;

  /// Never run: recorded as failed, each with its reason. For what hung or killed a process that tuned before.
  std::vector<ExcludedCandidate> excluded = {};

  /// Called right before a candidate runs, from the thread that called tune(): when the process dies or hangs, it was
  /// this one's doing. Must be quick; it is called before every sample.
  std::function<void(const Candidate&)> on_run = {};

  /// What will be tuned next: what that would compile first is compiled while this one is measured, on a GPU, where it
  /// does not disturb the measuring, and afterwards. Without, nothing is compiled any more when the tuning returns.
  std::optional<Problem> next = {};

  std::stop_token stop = {};  ///< ends the tuning early, without a winner
  std::function<void(const TuningProgress&)> on_progress = {};
};

/// Everything that a tuning found out.
struct Tuning {
  Problem problem;
  std::vector<Trial> trials;  ///< best first, then by verdict; what was left out uncompiled is one record a reason
  std::optional<std::size_t> winner;  ///< index into trials; none when stopped or when nothing worked
  std::shared_ptr<const Binary> winner_binary;
  double compile_ms = 0;
  double measure_ms = 0;
  bool budget_spent = false;
  bool stopped = false;
  bool has_compiled = false;  ///< whether any policy has
  SearchEnd search_end = SearchEnd::everything_searched;
  double rank_correlation = 0;  ///< Spearman's, of predicted with measured times; 0 with fewer than two
  double roofline_us = 0;       ///< what memory and launching take at least; 0: the device does not tell its bandwidth
  int discarded_samples = 0;    ///< taken while the device was throttled or shared, and thrown away

  /// Whether it is more than a heuristic choice: false when the budget allowed for one candidate alone.
  bool has_compared() const {
    const auto is_ok = [](const Trial& trial) { return trial.verdict == Verdict::ok; };
    return !budget_spent || std::count_if(trials.begin(), trials.end(), is_ok) > 1;
  }
};

/// Measures candidates for `problem` on `device` and picks the fastest that verifies. Uses streams and memory of
/// its own and never touches the caller's. Throws invalid_argument when the family refuses the problem and
/// out_of_memory when the inputs do not fit; a candidate's failure is a Trial, but device_lost is thrown when the
/// device does not work any more after it.
Tuning tune(const std::shared_ptr<Device>& device, const Problem& problem, const TuningOptions& options);

}  // namespace hone
