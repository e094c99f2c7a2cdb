// each_field: names and order of the columns of each record, in one place for writing, reading and digests.
#pragma once

#include <concepts>
#include <type_traits>

#include "cache/records.h"

namespace hone::cache {

/// Record, or const Record.
template <class T, class Record>
concept Some = std::same_as<std::remove_const_t<T>, Record>;

/// The part of a device that lookups compare.
template <class Visit>
void each_key_field(Some<DeviceRecord> auto& device, Visit visit) {
  visit("kind", device.kind);
  visit("architecture", device.architecture);
  visit("identity", device.identity);
}

template <class Visit>
void each_field(Some<DeviceRecord> auto& device, Visit visit) {
  each_key_field(device, visit);
  visit("name", device.name);
  visit("sm_count", device.sm_count);
  visit("max_threads_per_sm", device.max_threads_per_sm);
  visit("peak_bandwidth_gbps", device.peak_bandwidth_gbps);
}

/// The part of a toolchain that lookups compare.
template <class Visit>
void each_key_field(Some<ToolchainRecord> auto& toolchain, Visit visit) {
  visit("compiler", toolchain.compiler);
  visit("family_digest", toolchain.family_digest);
}

template <class Visit>
void each_field(Some<ToolchainRecord> auto& toolchain, Visit visit) {
  each_key_field(toolchain, visit);
  visit("driver", toolchain.driver);
}

template <class Visit>
void each_field(Some<ProblemRecord> auto& problem, Visit visit) {
  visit("family", problem.family);
  visit("operation", problem.operation);
  visit("dtype", problem.dtype);
  visit("numerics", problem.numerics);
  visit("launch_context", problem.launch_context);
  visit("alignment", problem.alignment);
  visit("first0", problem.sizes[0].first);
  visit("last0", problem.sizes[0].last);
  visit("first1", problem.sizes[1].first);
  visit("last1", problem.sizes[1].last);
  visit("first2", problem.sizes[2].first);
  visit("last2", problem.sizes[2].last);
  visit("objective", problem.objective);
}

template <class Visit>
void each_field(Some<CandidateRecord> auto& candidate, Visit visit) {
  visit("policy", candidate.policy);
  visit("max_blocks", candidate.max_blocks);
  visit("block_threads", candidate.block_threads);
  visit("registers", candidate.registers);
  visit("static_smem_bytes", candidate.static_smem_bytes);
  visit("local_bytes", candidate.local_bytes);
  visit("max_threads_per_block", candidate.max_threads_per_block);
  visit("resident_blocks", candidate.resident_blocks);
}

template <class Visit>
void each_field(Some<WinnerRecord> auto& winner, Visit visit) {
  each_field(winner.candidate, visit);
  visit("tuned", winner.tuned);
  visit("extent0", winner.tuned_extents[0]);
  visit("extent1", winner.tuned_extents[1]);
  visit("extent2", winner.tuned_extents[2]);
  visit("bytes_moved", winner.bytes_moved);
  visit("median_us", winner.median_us);
  visit("spread_us", winner.spread_us);
  visit("lender", winner.lender);
}

template <class Visit>
void each_field(Some<TrialRecord> auto& trial, Visit visit) {
  each_field(trial.candidate, visit);
  visit("bytes_in_flight_per_sm", trial.bytes_in_flight_per_sm);
  visit("predicted_us", trial.predicted_us);
  visit("median_us", trial.median_us);
  visit("spread_us", trial.spread_us);
  visit("samples", trial.samples);
  visit("is_default", trial.is_default);
  visit("verdict", trial.verdict);
  visit("reason", trial.reason);
  visit("energy_uj", trial.energy_uj);
  visit("energy_spread_uj", trial.energy_spread_uj);
  visit("sequence", trial.sequence);
}

template <class Visit>
void each_key_field(Some<LimitsRecord> auto& limits, Visit visit) {
  visit("device", limits.device);
  visit("machine", limits.machine);
  visit("driver", limits.driver);
}

template <class Visit>
void each_field(Some<LimitsRecord> auto& limits, Visit visit) {
  each_key_field(limits, visit);
  visit("enqueue_us", limits.enqueue_us);
  visit("stream_launch_us", limits.stream_launch_us);
  visit("graph_launch_us", limits.graph_launch_us);
  visit("read_gbps", limits.read_gbps);
  visit("measured_at", limits.measured_at);
}

/// Without its trials.
template <class Visit>
void each_field(Some<TuningRecord> auto& tuning, Visit visit) {
  visit("started_at", tuning.started_at);
  visit("compile_ms", tuning.compile_ms);
  visit("measure_ms", tuning.measure_ms);
  visit("budget_spent", tuning.budget_spent);
  visit("power_limit_w", tuning.power_limit_w);
}

template <class Visit>
void each_field(Some<BinaryRecord> auto& binary, Visit visit) {
  visit("format", binary.format);
  visit("architecture", binary.architecture);
  visit("code", binary.code);
  visit("entries", binary.entries);
}

}  // namespace hone::cache
