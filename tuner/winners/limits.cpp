#include "tuner/winners/limits.h"

#include <algorithm>
#include <array>
#include <optional>

#include <hone/candidate.h>
#include <hone/sdk/ceilings.h>

#include "tuner/problems/families.h"
#include "tuner/problems/problem_text.h"
#include "tuner/text/report.h"
#include "tuner/winners/stored_facts.h"
#include "tuner/winners/winner_detail.h"

namespace hone::tuner {
namespace {

/// An input this many times as large as the last-level cache comes from memory, whatever was read before.
constexpr std::int64_t kBeyondCache = 2;

/// From here on a part of the time is all there is to say: nothing else could be gained by a fifth.
constexpr double kMostOfIt = 0.8;

/// Fewer bytes in flight than this share of what Little's law asks for cannot saturate memory.
constexpr double kEnoughInFlight = 0.9;

/// Filling and draining the pipeline of loads, and combining blocks, take this many memory latencies at most: sums of
/// 2^18 to 2^22 f32 took 1.0 to 2.2 µs longer than the roofline, two to four latencies of 0.55 µs (H100, CUDA 13.0,
/// 2026-11-24).
constexpr double kMostLatencies = 6;

/// A device's fastest winner with an input from memory, else with any; GB/s.
double fastest_gbps(const cache::DeviceRecord& device, std::int64_t l2_bytes,
                    const std::vector<cache::StoredWinner>& winners) {
  double from_memory = 0, any = 0;
  for (const cache::StoredWinner& stored : winners) {
    if (stored.key.device != device) continue;
    const double gbps = winner_gbps(stored);
    any = std::max(any, gbps);
    if (stored.winner.bytes_moved >= kBeyondCache * l2_bytes) from_memory = std::max(from_memory, gbps);
  }
  return from_memory > 0 ? from_memory : any;
}

double shortest_us(const cache::DeviceRecord& device, LaunchContext context,
                   const std::vector<cache::StoredWinner>& winners) {
  double shortest = 0;
  for (const cache::StoredWinner& stored : winners) {
    if (stored.key.device != device || stored.key.problem.launch_context != name(context)) continue;
    const double us = winner_us(stored);
    if (us > 0 && (shortest == 0 || us < shortest)) shortest = us;
  }
  return shortest;
}

/// The tiles of the problem at which a winner was measured; 0 where its family or policy is not one of ours.
std::int64_t tiles_of(const cache::StoredWinner& stored) {
  const std::optional<Problem> problem = tuner::problem_of(stored.key.problem, stored.winner.tuned_extents);
  if (!problem) return 0;
  const std::optional<Policy> policy = problem->family->space().parse(stored.winner.candidate.policy);
  return policy ? problem->family->shape(*problem, *policy).tiles : 0;
}

Limit limit_by(double us, double floor_us, double launch_us, double memory_us, const WinnerLimit& found,
               std::int64_t in_flight, const DeviceCeilings& ceilings) {
  if (memory_us >= kMostOfIt * us) return Limit::memory;
  if (floor_us >= kMostOfIt * us) return Limit::launch;
  if (launch_us + memory_us >= kMostOfIt * us) return memory_us >= launch_us ? Limit::memory : Limit::launch;
  const double enough = kEnoughInFlight * static_cast<double>(ceilings.bytes_in_flight_needed);
  const bool is_starved = in_flight > 0 && static_cast<double>(in_flight) < enough;
  const bool leaves_sms_idle = found.blocks > 0 && found.blocks < ceilings.facts.sm_count;
  const double latency_us = static_cast<double>(ceilings.bytes_in_flight_needed) * ceilings.facts.sm_count /
                            std::max(ceilings.read_gbps * 1e3, 1.0);
  const bool is_short = us - found.roofline_us <= kMostLatencies * latency_us;
  if (ceilings.bytes_in_flight_needed > 0 && (is_starved || leaves_sms_idle || is_short)) return Limit::latency;
  return Limit::arithmetic;
}

}  // namespace

DeviceCeilings device_ceilings(const cache::DeviceRecord& device, LaunchContext context,
                               const std::vector<cache::StoredWinner>& winners) {
  DeviceCeilings ceilings{.facts = stored_facts(device)};
  const Ceilings model = model_ceilings(ceilings.facts, context);
  ceilings.implied_gbps = device.peak_bandwidth_gbps;
  ceilings.read_gbps = model.gbps;
  if (const double gbps = fastest_gbps(device, ceilings.facts.l2_bytes, winners); gbps > ceilings.read_gbps) {
    ceilings.read_gbps = gbps;
    ceilings.is_read_measured = true;
  }
  ceilings.launch_us = model.launch_us;
  ceilings.floor_us = std::max(model.launch_us, model.enqueue_us);
  if (const double us = shortest_us(device, context, winners); us > 0 && us < ceilings.floor_us) {
    ceilings.floor_us = us;
    ceilings.launch_us = std::min(ceilings.launch_us, us);
  }
  ceilings.bytes_in_flight_needed = bytes_in_flight_needed(ceilings.facts);
  return ceilings;
}

std::string_view name(Limit limit) {
  constexpr std::array<std::string_view, 4> kNames{"memory bandwidth", "launch", "latency", "arithmetic and issue"};
  return kNames[static_cast<std::size_t>(limit)];
}

WinnerLimit limit_of(const cache::StoredWinner& stored, double us, std::int64_t bytes_in_flight_per_sm,
                     const DeviceCeilings& ceilings) {
  WinnerLimit found;
  const cache::CandidateRecord& candidate = stored.winner.candidate;
  if (ceilings.read_gbps > 0)
    found.memory_us = static_cast<double>(stored.winner.bytes_moved) / (ceilings.read_gbps * 1e3);
  found.roofline_us = std::max(ceilings.launch_us + found.memory_us, ceilings.floor_us);
  found.tiles = tiles_of(stored);
  if (found.tiles > 0) found.blocks = std::clamp<std::int64_t>(candidate.max_blocks, 1, found.tiles);
  found.waves = waves_of(ceilings.facts, candidate.resident_blocks, found.blocks);
  found.limit =
      limit_by(us, ceilings.floor_us, ceilings.launch_us, found.memory_us, found, bytes_in_flight_per_sm, ceilings);
  return found;
}

}  // namespace hone::tuner
