#include "runtime/search/candidates.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <hone/sdk/occupancy.h>

#include "runtime/search/model.h"

namespace hone {
namespace {

/// A call of a slow path (a square root, an exponential) puts so much on the stack; more is spilled registers.
constexpr int kMostCallFrameBytes = 64;

/// Candidates that have less than this share of the needed bytes in flight are not worth measuring.
constexpr double kLeastShareInFlight = 0.5;

/// Work that is many times what the SMs hold in flight runs at the speed of memory, or should.
constexpr std::int64_t kSaturatingMultiple = 8;

/// The ranking knows nothing of registers, so what it promises of large tiles is a little more than they hold.
constexpr double kTellsApart = 1.02;

/// No kernel takes less: where no block fits with that, nothing has to be compiled.
constexpr Resources kLeastResources{.registers = 1};

/// Why a candidate that is resident should not be measured.
Reason reason_against(const DeviceFacts& facts, const Problem& problem, const Trial& trial,
                      const WorkShape& shape) {
  if (trial.resources.local_bytes > kMostCallFrameBytes + shape.local_array_bytes)
    return {ReasonCode::spills, {double(trial.resources.local_bytes)}};

  const std::int64_t needed = bytes_in_flight_needed(facts);
  const bool saturating =
      needed > 0 && problem.family->bytes_moved(problem) > needed * facts.sm_count * kSaturatingMultiple;
  if (saturating && shape.one_block && facts.sm_count > 1) return ReasonCode::one_block;
  if (saturating &&
      static_cast<double>(trial.bytes_in_flight_per_sm) < kLeastShareInFlight * static_cast<double>(needed))
    return {ReasonCode::bytes_in_flight,
            {static_cast<double>(trial.bytes_in_flight_per_sm), static_cast<double>(needed)}};
  return {};
}

/// For devices whose threads run one after the other.
std::vector<Geometry> sweeping_geometries(const DeviceFacts& facts, const WorkShape& shape,
                                          std::int64_t blocks_at_once) {
  const double work_bytes = static_cast<double>(shape.tiles) * static_cast<double>(shape.bytes_in_flight_per_block);
  const double least_share = model_constants(facts).block_share_bytes / 4;
  std::vector<Geometry> result{{.max_blocks = blocks_at_once}};
  for (std::int64_t waves = 2; work_bytes > least_share * static_cast<double>(result.back().max_blocks); waves *= 2) {
    const std::int64_t odd = waves * blocks_at_once - 1;  // an SM that idles in the last wave costs less
    if (odd > result.back().max_blocks) result.push_back({.max_blocks = odd});
  }
  return result;
}

}  // namespace

std::vector<Geometry> geometries(const DeviceFacts& facts, const WorkShape& shape, int resident_blocks,
                                 std::int64_t resident_clusters) {
  if (shape.one_block) return {{.max_blocks = shape.cluster_blocks}};
  const std::int64_t sms = facts.sm_count;
  if (shape.cooperative) return {{.max_blocks = sms}};
  const Geometry block_per_tile{.max_blocks = Geometry::kMostBlocks / sms * sms};
  if (shape.one_block_per_tile) return {block_per_tile};
  if (model_constants(facts).block_share_bytes > 0) return sweeping_geometries(facts, shape, resident_blocks * sms);
  std::vector<Geometry> result;
  for (std::int64_t per_sm = 1; per_sm < resident_blocks; per_sm *= 2) result.push_back({.max_blocks = per_sm * sms});
  const std::int64_t wave = resident_clusters > 0 ? resident_clusters * shape.cluster_blocks : resident_blocks * sms;
  const std::int64_t most_waves = shape.cluster_blocks > 1 && !shape.independent_blocks ? 1 : 4;
  for (std::int64_t waves = 1; waves <= most_waves; ++waves) result.push_back({.max_blocks = waves * wave});
  if (shape.independent_blocks) {
    result.push_back({.max_blocks = 8 * wave});
    if (!shape.loads_ahead) result.push_back(block_per_tile);
  }
  if (shape.most_block_threads > 0)
    for (Geometry& geometry : result) geometry.block_threads = shape.block_threads;
  return result;
}

bool may_be_better(const RankedPolicy& next, double compiled_us) {
  return compiled_us > kTellsApart * next.prediction.us();
}

WorkShape shape_of(const Problem& problem, const CompiledPolicy& compiled) {
  WorkShape shape = problem.family->shape(problem, compiled.policy);
  if (compiled.thread_bytes_in_flight > 0)
    shape.bytes_in_flight_per_block =
        std::min(shape.bytes_in_flight_per_block, compiled.thread_bytes_in_flight * shape.threads_that_load());
  return shape;
}

PolicyRanking rank_policies(const DeviceFacts& facts, const Problem& problem, Pruning pruning) {
  return rank_policies(facts, problem, problem.family->space().all(), pruning);
}

PolicyRanking rank_policies(const DeviceFacts& facts, const Problem& problem, std::span<const Policy> policies,
                            Pruning pruning) {
  const KernelFamily& family = *problem.family;
  const ProblemClass problem_class(problem);
  const std::int64_t bytes = family.bytes_moved(problem);
  PolicyRanking ranking;
  for (const Policy& policy : policies) {
    Reason reason = family.is_valid(problem_class, policy, facts);
    ranking.valid += reason.empty();
    if (reason.empty() && pruning == Pruning::on) reason = family.prune(problem_class, policy, facts);
    const WorkShape shape = family.shape(problem, policy);
    const int resident =
        reason.empty() ? resident_blocks(facts, kLeastResources, shape.block_threads, shape.dynamic_smem_bytes) : 0;
    if (reason.empty() && resident == 0) reason = ReasonCode::no_block_fits;
    if (!reason.empty()) {
      const auto same = std::find_if(ranking.rejected.begin(), ranking.rejected.end(),
                                     [&](const Trial& known) { return known.reason == reason; });
      if (same != ranking.rejected.end()) ++same->policies;
      else ranking.rejected.push_back({.candidate = {policy, {}}, .reason = std::move(reason)});
      continue;
    }
    RankedPolicy ranked{.policy = policy,
                         .prediction = {.device_us = std::numeric_limits<double>::infinity()}};
    for (const Geometry& geometry : geometries(facts, shape, resident)) {
      const Prediction prediction = predict(facts, shape, bytes, resident, geometry, problem.launch_context);
      if (is_faster(prediction, ranked.prediction)) ranked = {policy, geometry, prediction};
    }
    ranking.policies.push_back(ranked);
  }
  std::stable_sort(
      ranking.policies.begin(), ranking.policies.end(),
      [](const RankedPolicy& a, const RankedPolicy& b) { return is_faster(a.prediction, b.prediction); });
  return ranking;
}

CandidateList list_candidates(const DeviceFacts& facts, const Problem& problem,
                              std::span<const CompiledPolicy> policies, std::size_t workspace_bytes,
                              Pruning pruning) {
  const ProblemClass problem_class(problem);
  const std::int64_t bytes = problem.family->bytes_moved(problem);
  CandidateList list;
  std::vector<std::pair<Prediction, Trial>> predicted;
  for (const CompiledPolicy& compiled : policies) {
    const WorkShape shape = shape_of(problem, compiled);
    Trial trial{.candidate = {compiled.policy, {}},
                .resources = compiled.resources,
                .resident_blocks = compiled.resident_blocks};
    if (compiled.resident_blocks == 0) {
      const double smem_bytes = compiled.resources.static_smem_bytes + static_cast<double>(shape.dynamic_smem_bytes);
      trial.reason = {ReasonCode::not_resident,
                      {double(shape.block_threads), double(compiled.resources.registers), smem_bytes}};
      list.rejected.push_back(std::move(trial));
      continue;
    }
    std::int64_t covered_by = 0;
    for (const Geometry& geometry : geometries(facts, shape, compiled.resident_blocks, compiled.resident_clusters)) {
      const Prediction prediction =
          predict(facts, shape, bytes, compiled.resident_blocks, geometry, problem.launch_context);
      trial.candidate.geometry = geometry;
      trial.bytes_in_flight_per_sm = prediction.bytes_in_flight_per_sm;
      trial.predicted_us = prediction.us();
      const std::size_t workspace = problem.family->workspace_bytes(problem_class, trial.candidate);
      trial.reason = {};
      if (covered_by > 0)
        trial.reason = {ReasonCode::covers_all_work, {static_cast<double>(covered_by)}};
      else if (workspace > workspace_bytes)
        trial.reason = {ReasonCode::workspace, {static_cast<double>(workspace), static_cast<double>(workspace_bytes)}};
      else if (pruning == Pruning::on)
        trial.reason = reason_against(facts, problem, trial, shape);
      if (shape.tiles <= geometry.max_blocks && covered_by == 0) covered_by = geometry.max_blocks;
      if (trial.reason.empty()) predicted.emplace_back(prediction, trial);
      else list.rejected.push_back(trial);
    }
  }
  std::stable_sort(predicted.begin(), predicted.end(),
                   [](const auto& a, const auto& b) { return is_faster(a.first, b.first); });
  for (auto& [prediction, trial] : predicted) {
    trial.verdict = Verdict::ok;
    list.candidates.push_back(std::move(trial));
  }
  return list;
}

}  // namespace hone
