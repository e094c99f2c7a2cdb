// Winners for one GPU from the trials of another, by laws: the model's time, wrong by a factor that belongs to the
// policy.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <hone/error.h>
#include <hone/reduce_spec.h>
#include <hone/sdk/known_gpus.h>
#include <hone/sdk/transfer.h>

#include "runtime/search/candidates.h"
#include "runtime/search/model.h"
#include "tests/support/names.h"

namespace hone {
namespace {

constexpr int kResident = 4;

const DeviceFacts& facts_of(std::string_view name) { return find_known_gpu(name)->facts; }

/// ±`share`, the same for the same text.
double factor(const std::string& text, double share) {
  const auto hash = static_cast<double>(std::hash<std::string>{}(text) >> 11 & 1023);
  return 1 + share * (hash / 511.5 - 1);
}

/// Invents a time for each candidate of `problem` on a GPU: the model is up to 20 % wrong about a policy, on every GPU
/// alike, and chance makes up to half a percent.
std::vector<Trial> trials_on(const DeviceFacts& facts, const Problem& problem) {
  std::vector<Trial> trials;
  for (const RankedPolicy& ranked : rank_policies(facts, problem).policies) {
    const CompiledPolicy compiled{
        .policy = ranked.policy, .resources = {.registers = 32}, .resident_blocks = kResident};
    for (const Trial& listed : list_candidates(facts, problem, std::span(&compiled, 1), kWorkspaceBytes).candidates) {
      Trial& trial = trials.emplace_back(listed);
      const std::string policy = problem.family->space().to_string(trial.candidate.policy);
      trial.verdict = Verdict::ok;
      trial.median_us = predict(facts, problem, trial.candidate, trial.resident_blocks).us() * factor(policy, 0.2) *
                        factor(facts.name + policy, 0.005);
    }
  }
  return trials;
}

double us_of(const std::vector<Trial>& trials, const Candidate& candidate) {
  const auto found = std::find_if(trials.begin(), trials.end(),
                                  [&](const Trial& trial) { return trial.candidate == candidate; });
  return found == trials.end() ? 0 : found->median_us;
}

TEST(Transfer, WinnersOfAnH100AreNearlyTheFastestOnAnH200AndBack) {
  for (const auto& [from, to] : {std::pair("h100", "h200"), std::pair("h200", "h100")})
    for (const std::int64_t n : {std::int64_t{1} << 14, std::int64_t{1} << 20, std::int64_t{1} << 27}) {
      const Problem problem = reduce_problem(ReduceOp::sum, DType::f32, n);
      const std::vector<Trial> there = trials_on(facts_of(from), problem), here = trials_on(facts_of(to), problem);
      const auto choice = predict_transfer(problem, facts_of(from), there, facts_of(to));
      ASSERT_TRUE(choice);
      const double us = us_of(here, choice->candidate);
      double fastest = us;
      for (const Trial& trial : here) fastest = std::min(fastest, trial.median_us);
      ASSERT_GT(us, 0);
      EXPECT_LT(us / fastest - 1, 0.03) << from << " to " << to << ", n = " << n;
    }
}

TEST(Transfer, APersistentGridHasAsManyBlocksOnEachSm) {
  const Problem problem = reduce_problem(ReduceOp::sum, DType::f32, std::int64_t{1} << 27);
  DeviceFacts half = facts_of("h100");
  half.sm_count /= 2;
  std::vector<Trial> trials = trials_on(facts_of("h100"), problem);
  std::erase_if(trials, [](const Trial& trial) {
    const Geometry& grid = trial.candidate.geometry;
    return grid.is_block_per_tile() || grid.max_blocks == 1 || grid.max_blocks % 132 != 0;
  });
  ASSERT_FALSE(trials.empty());
  trials.resize(1);
  const auto choice = predict_transfer(problem, facts_of("h100"), trials, half);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->candidate.geometry.max_blocks * 2, trials[0].candidate.geometry.max_blocks);
}

TEST(Transfer, AStoredIdentitySaysThatThereAreClusters) {
  const DeviceFacts& h100 = facts_of("h100");
  EXPECT_EQ(facts_of_identity(tuning_identity(h100)).max_cluster_blocks, h100.max_cluster_blocks);
}

TEST(Transfer, WithoutMeasuredTrialsThereIsNone) {
  const Problem problem = reduce_problem(ReduceOp::sum, DType::f32, 1000);
  EXPECT_FALSE(predict_transfer(problem, facts_of("h100"), {}, facts_of("h200")));
  std::vector<Trial> trials = trials_on(facts_of("h100"), problem);
  for (Trial& trial : trials) trial.verdict = Verdict::rejected;
  EXPECT_FALSE(predict_transfer(problem, facts_of("h100"), trials, facts_of("h200")));
}

TEST(Transfer, DevicesOfAnotherKindAreRefused) {
  const Problem problem = reduce_problem(ReduceOp::sum, DType::f32, 1000);
  DeviceFacts host;
  host.kind = "host";
  EXPECT_THROW(predict_transfer(problem, host, {}, facts_of("h200")), Error);
}

}  // namespace
}  // namespace hone
