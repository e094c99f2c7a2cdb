#include "runtime/dispatch/cache_records.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/device.h>
#include <hone/sdk/stored_policy.h>

#include "cache/shipped_winners.h"
#include "runtime/choose/stopping_rule.h"

namespace hone {
namespace {

/// Stands in a stored binary's format, before the digest of its unit.
constexpr std::string_view kUnitMark = ";unit=";

cache::CandidateRecord candidate_record(const Problem& problem, const Candidate& candidate, const Resources& resources,
                                        int resident_blocks) {
  return {.policy = problem.family->space().to_string(candidate.policy),
          .max_blocks = candidate.geometry.max_blocks,
          .block_threads = candidate.geometry.block_threads > 0
                               ? candidate.geometry.block_threads
                               : problem.family->shape(problem, candidate.policy).block_threads,
          .registers = resources.registers,
          .static_smem_bytes = resources.static_smem_bytes,
          .local_bytes = resources.local_bytes,
          .max_threads_per_block = resources.max_threads_per_block,
          .resident_blocks = resident_blocks};
}

Geometry geometry_of(const Problem& problem, const Policy& policy, const cache::CandidateRecord& record) {
  const bool may_differ = problem.family->shape(problem, policy).most_block_threads > 0;
  return {.max_blocks = record.max_blocks, .block_threads = may_differ ? record.block_threads : 0};
}

Resources resources_of(const cache::CandidateRecord& record) {
  return {.registers = record.registers,
          .static_smem_bytes = record.static_smem_bytes,
          .local_bytes = record.local_bytes,
          .max_threads_per_block = record.max_threads_per_block};
}

constexpr std::string_view kLoanMark = ": ";

std::string lender_text(const Winner& winner) {
  if (winner.tuned && !winner.shipped.empty()) return fmt::format("{}{}", cache::kShippedMark, winner.shipped);
  if (winner.loan == Loan::none || winner.tuned) return "";
  return fmt::format("{}{}{}", name(winner.loan), kLoanMark, winner.lender);
}

/// Rows of schemas before 6 do not say what they were lent: it was always the winner of another shape.
void read_lender(const std::string& text, Winner& winner) {
  if (winner.tuned && text.starts_with(cache::kShippedMark)) winner.shipped = text.substr(cache::kShippedMark.size());
  if (winner.tuned) return;
  const std::size_t mark = text.find(kLoanMark);
  const auto loan = std::find(kLoanNames.begin(), kLoanNames.end(), text.substr(0, mark));
  if (mark != std::string::npos && loan != kLoanNames.end()) {
    winner.loan = static_cast<Loan>(loan - kLoanNames.begin());
    winner.lender = text.substr(mark + kLoanMark.size());
  }
  if (winner.loan == Loan::none && !is_within(winner.tuned_extents, winner.sizes)) winner.loan = Loan::shape;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

}  // namespace

cache::DeviceRecord device_record(const DeviceFacts& facts) {
  return {.kind = facts.kind,
          .name = facts.name,
          .architecture = facts.architecture,
          .identity = tuning_identity(facts),
          .sm_count = facts.sm_count,
          .max_threads_per_sm = facts.max_threads_per_sm,
          .peak_bandwidth_gbps = peak_bandwidth_gbps(facts)};
}

cache::LimitsRecord limits_record(const DeviceFacts& facts, const DeviceLimits& limits) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.device = fmt::format("{} {} {}", facts.kind, facts.architecture, tuning_identity(facts)),
          .machine = cpu_name(),
          .driver = facts.driver,
          .enqueue_us = limits.enqueue_us,
          .stream_launch_us = limits.stream_launch_us,
          .graph_launch_us = limits.graph_launch_us,
          .read_gbps = limits.read_gbps,
          .measured_at = std::chrono::duration_cast<std::chrono::seconds>(now).count()};
}

DeviceLimits limits_of(const cache::LimitsRecord& record) {
  return {.enqueue_us = record.enqueue_us,
          .stream_launch_us = record.stream_launch_us,
          .graph_launch_us = record.graph_launch_us,
          .read_gbps = record.read_gbps};
}

std::array<cache::RangeRecord, 3> range_records(const std::array<SizeRange, 3>& sizes) {
  std::array<cache::RangeRecord, 3> records;
  for (std::size_t i = 0; i < records.size(); ++i) records[i] = {sizes[i].first, sizes[i].last};
  return records;
}

std::string dtypes_text(const Problem& problem) {
  std::string text(info(problem.dtype).name);
  if (problem.accumulator) text.append(" in ").append(info(*problem.accumulator).name);
  if (problem.result) text.append(" to ").append(info(*problem.result).name);
  return text;
}

std::string_view numerics_text(const Problem& problem) {
  if (problem.nan == NanPolicy::propagate) return name(problem.numerics);
  return problem.numerics == Numerics::fast ? "fast, NaN ignored" : "reproducible, NaN ignored";
}

Problem measured_problem(const Problem& problem, const std::array<std::int64_t, 3>& tuned_extents) {
  Problem measured = problem;
  measured.extents = tuned_extents;
  if (tuned_extents != problem.extents) measured.pitches = {0, 0};  // those of the problem may be too short there
  return measured;
}

cache::WinnerRecord winner_record(const Problem& problem, const Winner& winner) {
  return {.candidate = candidate_record(problem, winner.candidate, winner.resources, winner.resident_blocks),
          .tuned = winner.tuned,
          .tuned_extents = winner.tuned_extents,
          .bytes_moved = problem.family->bytes_moved(measured_problem(problem, winner.tuned_extents)),
          .median_us = winner.median_us,
          .spread_us = winner.spread_us,
          .lender = lender_text(winner)};
}

cache::TuningRecord tuning_record(const Tuning& tuning) {
  const auto start = std::chrono::system_clock::now() -
                     std::chrono::duration<double, std::milli>(tuning.compile_ms + tuning.measure_ms);
  cache::TuningRecord record{
      .started_at = std::chrono::duration_cast<std::chrono::seconds>(start.time_since_epoch()).count(),
      .compile_ms = tuning.compile_ms,
      .measure_ms = tuning.measure_ms,
      .budget_spent = tuning.budget_spent,
      .trials = {},
      .power_limit_w = tuning.power_limit_w};
  for (const Trial& trial : tuning.trials)
    record.trials.push_back(
        {.candidate = candidate_record(tuning.problem, trial.candidate, trial.resources, trial.resident_blocks),
         .bytes_in_flight_per_sm = trial.bytes_in_flight_per_sm,
         .predicted_us = trial.predicted_us,
         .median_us = trial.median_us,
         .spread_us = trial.spread_us,
         .samples = trial.samples,
         .is_default = trial.is_default,
         .verdict = std::string(name(trial.verdict)),
         .reason = CountedReason{trial.reason, trial.policies}.text(),
         .energy_uj = trial.energy_uj,
         .energy_spread_uj = trial.energy_spread_uj,
         .sequence = trial.sequence});
  return record;
}

std::optional<Policy> stored_policy(const Problem& problem, std::string_view text, std::int64_t block_threads,
                                    std::int64_t max_blocks, std::string* misfit) {
  std::string fault;
  const std::optional<Policy> policy = problem.family->space().parse(text, &fault);
  if (policy) {
    const WorkShape shape = problem.family->shape(problem, *policy);
    const bool may_be_fewer = block_threads > 0 && block_threads <= shape.most_block_threads;
    if (block_threads != shape.block_threads && !may_be_fewer)
      fault = fmt::format("its blocks have {} threads, not {}", block_threads, shape.block_threads);
    else if (max_blocks < 1) fault = fmt::format("{} blocks are no grid", max_blocks);
  }
  if (fault.empty()) return policy;
  if (misfit) *misfit = fmt::format("'{}' is no policy of {}: {}", text, problem.family->name(), fault);
  return std::nullopt;
}

std::optional<Winner> winner_of(const Problem& problem, const cache::WinnerRecord& winner,
                                const std::array<cache::RangeRecord, 3>& sizes, std::string* misfit) {
  const cache::CandidateRecord& record = winner.candidate;
  const std::optional<Policy> policy =
      stored_policy(problem, record.policy, record.block_threads, record.max_blocks, misfit);
  if (!policy) return std::nullopt;
  Winner result{.candidate = {*policy, geometry_of(problem, *policy, record)},
                .resources = resources_of(record),
                .resident_blocks = record.resident_blocks,
                .tuned = winner.tuned,
                .median_us = winner.median_us,
                .spread_us = winner.spread_us,
                .launch_context = problem.launch_context,
                .tuned_extents = winner.tuned_extents};
  for (std::size_t i = 0; i < sizes.size(); ++i) result.sizes[i] = {sizes[i].first, sizes[i].last};
  read_lender(winner.lender, result);
  return result;
}

Tuning tuning_of(const Problem& measured, const cache::TuningRecord& record) {
  Tuning tuning{.problem = measured,
                .trials = {},
                .winner = {},
                .winner_binary = nullptr,
                .compile_ms = record.compile_ms,
                .measure_ms = record.measure_ms,
                .budget_spent = record.budget_spent,
                .power_limit_w = record.power_limit_w};
  for (const cache::TrialRecord& stored : record.trials) {
    const std::optional<Policy> policy = measured.family->space().parse(stored.candidate.policy);
    const auto verdict = std::find(kVerdictNames.begin(), kVerdictNames.end(), stored.verdict);
    if (!policy || verdict == kVerdictNames.end()) continue;
    CountedReason counted = CountedReason::parse(stored.reason);
    tuning.trials.push_back({.candidate = {*policy, geometry_of(measured, *policy, stored.candidate)},
                             .policies = counted.policies,
                             .resources = resources_of(stored.candidate),
                             .resident_blocks = stored.candidate.resident_blocks,
                             .bytes_in_flight_per_sm = stored.bytes_in_flight_per_sm,
                             .predicted_us = stored.predicted_us,
                             .median_us = stored.median_us,
                             .spread_us = stored.spread_us,
                             .samples = stored.samples,
                             .energy_uj = stored.energy_uj,
                             .energy_spread_uj = stored.energy_spread_uj,
                             .sequence = stored.sequence,
                             .is_default = stored.is_default,
                             .verdict = static_cast<Verdict>(verdict - kVerdictNames.begin()),
                             .reason = std::move(counted.reason)});
  }
  tuning.search_end = search_end_of(tuning.trials, record.budget_spent);
  tuning.rank_correlation = rank_correlation_of(tuning.trials);
  return tuning;
}

cache::BinaryRecord binary_record(const Binary& binary, std::string_view unit_digest) {
  return {.format = fmt::format("{}{}{}", binary.format, kUnitMark, unit_digest),
          .architecture = binary.architecture,
          .code = binary.code,
          .entries = fmt::format("{}", fmt::join(binary.entries, "\n"))};
}

std::optional<StoredCode> stored_code(cache::BinaryRecord record) {
  const std::size_t mark = record.format.find(kUnitMark);
  if (mark == std::string::npos) return std::nullopt;
  return StoredCode{.binary = {.format = record.format.substr(0, mark),
                               .architecture = std::move(record.architecture),
                               .code = std::move(record.code),
                               .entries = lines_of(record.entries)},
                    .unit_digest = record.format.substr(mark + kUnitMark.size())};
}

}  // namespace hone
