// tune(): from a problem to a winner, with every trial kept as evidence.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
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

struct TuningOptions {
  /// Wall-clock time to spend. What is not measured by then is recorded as rejected. At least the model's first
  /// choice is always compiled, measured and verified.
  std::chrono::milliseconds budget{2000};

  /// Candidates that need more workspace than this are rejected.
  std::size_t workspace_bytes = 128 * 1024;

  std::stop_token stop = {};  ///< ends the tuning early, without a winner
  std::function<void(const TuningProgress&)> on_progress = {};
};

/// Everything that a tuning found out.
struct Tuning {
  Problem problem;
  std::vector<Trial> trials;          ///< best first, then by verdict; every variant of the space has its record
  std::optional<std::size_t> winner;  ///< index into trials; none when stopped or when nothing worked
  std::shared_ptr<const Binary> winner_binary;
  double compile_ms = 0;
  double measure_ms = 0;
  bool budget_spent = false;
  bool stopped = false;
};

/// Measures candidates for `problem` on `device` and picks the fastest that verifies. Uses streams and memory of
/// its own and never touches the caller's. Throws invalid_argument when the family refuses the problem and
/// out_of_memory when the inputs do not fit; a candidate's failure is a Trial.
Tuning tune(const std::shared_ptr<Device>& device, const Problem& problem, const TuningOptions& options);

}  // namespace hone
