// One winner in detail: its key, its resources, its runners-up, and what was rejected and why.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/records.h"
#include "tuner/command.h"

namespace hone::tuner {

/// "reduce sum f32", or "reduce sum f32 graph" for calls in a replayed graph.
std::string problem_text(const cache::ProblemRecord& problem);

/// "NVIDIA H200 (cuda, sm_90): 132 SMs, 4916 GB/s"; the bandwidth only where it is known.
std::string device_text(const cache::DeviceRecord& device);

/// "862..1217", "5793..11585 × 46..90": the ranges of the extents that the family uses. Of a family that is not built
/// in, an extent after the first that was 1 when the winner was chosen is left out.
std::string sizes_text(const cache::StoredWinner& stored);

/// "1024", "8192 × 64": the extents at which the winner was measured.
std::string measured_at_text(const cache::StoredWinner& stored);

/// "tuned", "nearest" (untuned, of the nearest tuned shape) or "heuristic".
std::string_view how_text(const cache::StoredWinner& stored);

/// Winners' figures for tables and JSON; 0 where unknown.
double winner_occupancy(const cache::StoredWinner& stored);
double winner_gbps(const cache::StoredWinner& stored);

/// Rejected, wrong and failed trials by their reason, the most frequent first. Reasons that differ in numbers only
/// count as one and are shown with the numbers as "…".
struct ReasonCount {
  std::string verdict;
  std::string reason;
  int count = 0;
};
std::vector<ReasonCount> count_reasons(const std::vector<cache::TrialRecord>& trials);

/// `all`: every trial instead of the best ten.
void print_detail(const cache::StoredWinner& stored, const std::optional<cache::TuningRecord>& tuning, bool all,
                  const Context& context);

}  // namespace hone::tuner
