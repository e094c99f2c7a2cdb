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

/// Others that are slower than a winner by more than this tell nothing of what memory allows.
constexpr double kNoCeiling = 1.1;

/// No id of a winner.
constexpr std::int64_t kNoWinner = -1;

/// Takes what a device's winners reach into its ceilings.
void add_records(const cache::DeviceRecord& device, const std::vector<cache::StoredWinner>& winners,
                 DeviceCeilings& ceilings) {
  for (const cache::StoredWinner& stored : winners) {
    if (stored.key.device != device) continue;
    const double gbps = winner_gbps(stored), us = winner_us(stored);
    ceilings.any_gbps.add(gbps, stored.id);
    if (stored.winner.bytes_moved >= kBeyondCache * ceilings.facts.l2_bytes)
      ceilings.from_memory_gbps.add(gbps, stored.id);
    const bool is_in_context = stored.key.problem.launch_context == name(ceilings.context);
    if (is_in_context && us > 0) ceilings.calls_per_us.add(1 / us, stored.id);
  }
}

/// Sets what model and winners say together, the latter without one of them.
void set_ceilings(DeviceCeilings& ceilings, std::int64_t without_winner) {
  const Ceilings model = model_ceilings(ceilings.facts, ceilings.context);
  const double from_memory = ceilings.from_memory_gbps.without(without_winner);
  const double measured = from_memory > 0 ? from_memory : ceilings.any_gbps.without(without_winner);
  ceilings.is_read_measured = measured > model.gbps;
  ceilings.read_gbps = std::max(model.gbps, measured);
  ceilings.launch_us = model.launch_us;
  ceilings.floor_us = std::max(model.launch_us, model.enqueue_us);
  if (const double rate = ceilings.calls_per_us.without(without_winner); rate * ceilings.floor_us > 1) {
    ceilings.floor_us = 1 / rate;
    ceilings.launch_us = std::min(ceilings.launch_us, ceilings.floor_us);
  }
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

void Records::add(double figure, std::int64_t id) {
  if (figure > first) {
    second = first;
    first = figure;
    winner = id;
  } else {
    second = std::max(second, figure);
  }
}

DeviceCeilings device_ceilings(const cache::DeviceRecord& device, LaunchContext context,
                               const std::vector<cache::StoredWinner>& winners) {
  DeviceCeilings ceilings;
  ceilings.facts = stored_facts(device);
  ceilings.context = context;
  ceilings.implied_gbps = device.peak_bandwidth_gbps;
  ceilings.bytes_in_flight_needed = bytes_in_flight_needed(ceilings.facts);
  add_records(device, winners, ceilings);
  set_ceilings(ceilings, kNoWinner);
  return ceilings;
}

DeviceCeilings DeviceCeilings::without(std::int64_t winner) const {
  DeviceCeilings others = *this;
  set_ceilings(others, winner);
  return others;
}

std::string_view name(Limit limit) {
  constexpr std::array<std::string_view, 4> kNames{"memory bandwidth", "launch", "latency", "arithmetic and issue"};
  return kNames[static_cast<std::size_t>(limit)];
}

WinnerLimit limit_of(const cache::StoredWinner& stored, std::int64_t bytes_in_flight_per_sm,
                     const DeviceCeilings& ceilings) {
  WinnerLimit found;
  const double us = stored.winner.median_us;
  const cache::CandidateRecord& candidate = stored.winner.candidate;
  if (ceilings.read_gbps > 0)
    found.memory_us = static_cast<double>(stored.winner.bytes_moved) / (ceilings.read_gbps * 1e3);
  if (ceilings.is_read_measured && found.memory_us > kNoCeiling * us) found.memory_us = 0;
  found.roofline_us = std::max(ceilings.launch_us + found.memory_us, ceilings.floor_us);
  found.tiles = tiles_of(stored);
  if (found.tiles > 0) found.blocks = std::clamp<std::int64_t>(candidate.max_blocks, 1, found.tiles);
  found.waves = waves_of(ceilings.facts, candidate.resident_blocks, found.blocks);
  found.limit =
      limit_by(us, ceilings.floor_us, ceilings.launch_us, found.memory_us, found, bytes_in_flight_per_sm, ceilings);
  return found;
}

}  // namespace hone::tuner
