// hone plan, in-process: lists, predicted winners in a cache file, and GPUs that NVRTC does not know.
#include <gmock/gmock.h>
#include <hone/sdk/absent_gpu.h>
#include <hone/sdk/known_gpus.h>

#include <nlohmann/json.hpp>

#include "tests/support/names.h"
#include "tests/tuner/support.h"
#include "tuner/context/gpu_facts.h"

namespace hone::tuner {
namespace {

using nlohmann::json;
using test::Names;
using testing::CommandRun;
using testing::run_hone;
using testing::TemporaryFolder;
using testing::write_file;

class PlanCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (make_absent_gpu(find_known_gpu("h100")->facts)->compiler_identity().empty())
      GTEST_SKIP() << "there is no NVRTC";
  }

  TemporaryFolder folder_;
};

TEST_F(PlanCommand, ListsCandidatesWithThePredictedWinner) {
  const CommandRun run = run_hone({"plan", "--gpu", "h100", "--size", "2^22", "--policies", "2", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const json plan = json::parse(run.out);
  EXPECT_EQ(plan.at("gpu").at("name"), "NVIDIA H100 80GB HBM3");
  const json& problem = plan.at("problems").at(0);
  EXPECT_EQ(problem.at("compiled"), 2);
  int winners = 0;
  double last_us = 0;
  for (const json& candidate : problem.at("candidates")) {
    winners += candidate.at("is_predicted_winner") ? 1 : 0;
    EXPECT_GE(candidate.at("predicted_us"), last_us);
    last_us = candidate.at("predicted_us");
    EXPECT_GT(candidate.at("registers"), 0);
  }
  EXPECT_EQ(winners, 1);
  EXPECT_FALSE(problem.at("rejected").empty());
}

TEST_F(PlanCommand, AFileOfFactsPlansAsTheNameDoes) {
  write_file(folder_ / "h100.json", facts_json(find_known_gpu("h100")->facts).dump());
  const std::vector<std::string> problem{"--size", "2^20", "--policies", "1"};
  std::vector<std::string> by_name{"plan", "--gpu", "h100"}, by_file{"plan", "--gpu", (folder_ / "h100.json").string()};
  by_name.insert(by_name.end(), problem.begin(), problem.end());
  by_file.insert(by_file.end(), problem.begin(), problem.end());
  const CommandRun named = run_hone(by_name);
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_EQ(named.out, run_hone(by_file).out);
}

TEST_F(PlanCommand, StoresPredictedWinnersThatAreLabelled) {
  const std::string file = (folder_ / "winners.sqlite").string();
  const CommandRun run = run_hone({"plan", "--gpu", "a100", "--size", "2^12,2^22", "-o", file});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, Names("NVIDIA A100-SXM4-40GB", "2^12", "2^22", "2 predicted winners", file));
  const CommandRun inspected = run_hone({"inspect", "--cache", file, "--json"});
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  const json winners = json::parse(inspected.out).at("winners");
  ASSERT_EQ(winners.size(), 2U);
  for (const json& winner : winners) {
    EXPECT_EQ(winner.at("device").at("name"), "NVIDIA A100-SXM4-40GB");
    EXPECT_EQ(winner.at("how"), "heuristic");
  }
}

TEST_F(PlanCommand, AnArchitectureThatNvrtcDoesNotKnowIsNamedWithThoseItKnows) {
  auto facts = facts_json(find_known_gpu("h100")->facts);
  facts["architecture"] = "sm_91";
  facts["compute_capability"] = 91;
  write_file(folder_ / "gpu.json", facts.dump());
  const CommandRun run = run_hone({"plan", "--gpu", (folder_ / "gpu.json").string(), "--size", "2^20"});
  EXPECT_EQ(run.code, 6);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, Names("sm_91", "sm_90", "sm_100", "HONE_NVRTC"));
}

TEST_F(PlanCommand, AGpuWithoutRegistersForAnyBlockIsRefusedWithoutCompiling) {
  auto facts = facts_json(find_known_gpu("h100")->facts);
  facts["registers_per_sm"] = facts["registers_per_block"] = 256;
  write_file(folder_ / "gpu.json", facts.dump());
  const CommandRun run = run_hone({"plan", "--gpu", (folder_ / "gpu.json").string(), "--size", "2^20"});
  EXPECT_EQ(run.code, 6);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, Names("sum f32", "no block"));
}

TEST_F(PlanCommand, OneSmWithSlowMemoryHasCandidates) {
  auto facts = facts_json(find_known_gpu("h100")->facts);
  facts["sm_count"] = 1;
  facts["memory_clock_khz"] = 1000;
  facts["memory_bus_bits"] = 8;
  write_file(folder_ / "gpu.json", facts.dump());
  const CommandRun run = run_hone(
      {"plan", "--gpu", (folder_ / "gpu.json").string(), "--size", "2^20", "--policies", "2", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const json problem = json::parse(run.out).at("problems").at(0);
  EXPECT_FALSE(problem.at("candidates").empty());
  EXPECT_EQ(problem.at("predicted_winner").at("policy"), problem.at("candidates").at(0).at("policy"));
}

TEST_F(PlanCommand, AFileThatCannotBeWrittenIsSaid) {
  const CommandRun run = run_hone({"plan", "--gpu", "h100", "--size", "2^12", "-o", "/proc/no/winners.sqlite"});
  EXPECT_EQ(run.code, 5);
  EXPECT_THAT(run.err, Names("/proc/no/winners.sqlite"));
}

}  // namespace
}  // namespace hone::tuner
