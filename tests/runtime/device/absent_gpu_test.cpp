#include <hone/sdk/absent_gpu.h>

#include <gmock/gmock.h>

#include <algorithm>

#include <hone/error.h>
#include <hone/sdk/candidate_plan.h>
#include <hone/sdk/forwarding_device.h>
#include <hone/sdk/known_gpus.h>
#include <hone/sdk/occupancy.h>
#include <hone/session.h>
#include <hone/tuned_reduce.h>

#include "runtime/search/candidates.h"
#include "tests/runtime/support/invented_devices.h"
#include "tests/runtime/support/temp_folder.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

Problem sum_of(std::int64_t n) {
  return {.family = &reduce_family(), .operation = static_cast<std::uint8_t>(ReduceOp::sum), .extents = {n, 1, 1}};
}

class AbsentGpu : public testing::Test {
 protected:
  void SetUp() override {
    device_ = make_absent_gpu(find_known_gpu("h100")->facts);
    if (device_->compiler_identity().empty()) GTEST_SKIP() << "there is no NVRTC";
  }

  std::shared_ptr<Device> device_;
};

TEST_F(AbsentGpu, ListsCandidatesInTheOrderOfTheirPredictions) {
  const CandidatePlan plan = plan_candidates(*device_, sum_of(1 << 24), 3);
  EXPECT_EQ(plan.compiled, 3U);
  EXPECT_GT(plan.ranked, 3U);
  ASSERT_FALSE(plan.candidates.empty());
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    const Trial& trial = plan.candidates[i];
    EXPECT_GT(trial.resources.registers, 0);
    EXPECT_GT(trial.bytes_in_flight_per_sm, 0);
    const WorkShape shape = reduce_family().shape(sum_of(1 << 24), trial.candidate.policy);
    EXPECT_EQ(trial.resident_blocks,
              resident_blocks(device_->facts(), trial.resources, shape.block_threads, shape.dynamic_smem_bytes));
    EXPECT_GE(trial.predicted_us, plan.candidates[i == 0 ? 0 : i - 1].predicted_us);
  }
}

TEST_F(AbsentGpu, StoresTheModelsChoiceForTheRealOne) {
  const TempFolder folder;
  SessionOptions options{
      .on_miss = MissPolicy::heuristic, .cache_path = folder / "cache.sqlite", .capture_workspaces = 0};
  {
    Session session(device_, options);
    EXPECT_EQ(session.prepare(sum_of(1 << 20)).source, ChoiceSource::heuristic);
    EXPECT_GE(session.counters().compiles, 1U);
    EXPECT_LE(session.counters().compiles, static_cast<std::uint64_t>(kMostFirstChoices));
  }
  Session again(make_absent_gpu(device_->facts()), options);
  const Choice choice = again.prepare(sum_of(1 << 20));
  EXPECT_EQ(choice.source, ChoiceSource::cache);
  EXPECT_FALSE(choice.winner->tuned);
  EXPECT_EQ(again.counters().compiles, 0U);
}

/// A device with another NVRTC, or none: compiling fails.
class OtherNvrtc final : public ForwardingDevice {
 public:
  OtherNvrtc(std::shared_ptr<Device> inner, std::string identity)
      : ForwardingDevice(std::move(inner)), identity_(std::move(identity)) {}

  std::string compiler_identity() const override { return identity_; }
  Binary compile(const Unit&) const override { throw Error(ErrorCode::unsupported, "nothing is to be compiled"); }

 private:
  std::string identity_;
};

/// By recorded facts of a GPU, as its driver would give them in a machine with another toolkit.
TEST_F(AbsentGpu, CodeServesUnderAnotherNvrtcNameAndDriverAndWithoutAnyNvrtc) {
  const TempFolder folder;
  const SessionOptions options{
      .on_miss = MissPolicy::heuristic, .cache_path = folder / "cache.sqlite", .capture_workspaces = 0};
  const Candidate stored = Session(device_, options).prepare(sum_of(1 << 20)).winner->candidate;
  DeviceFacts facts = device_->facts();
  facts.name = "NVIDIA H100";
  facts.driver = "13.5";
  facts.memory_clock_khz -= 19000;
  for (const char* nvrtc : {"libnvrtc.so.12.8.93:104857600", "libnvrtc.so.14.0.1:120000000", ""}) {
    Session session(std::make_shared<OtherNvrtc>(make_absent_gpu(facts), nvrtc), options);
    const Choice choice = session.prepare(sum_of(1 << 20));
    EXPECT_EQ(choice.source, ChoiceSource::cache) << nvrtc;
    EXPECT_EQ(choice.winner->candidate, stored);
    EXPECT_EQ(session.counters().cache_failures, 0U);
  }
}

TEST_F(AbsentGpu, RunsNothing) {
  try {
    device_->allocate(1);
    FAIL() << "it has no memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), Names("allocate", "NVIDIA H100 80GB HBM3"));
  }
}

TEST_F(AbsentGpu, AnArchitectureThatNvrtcDoesNotKnowIsNamedWithThoseItKnows) {
  DeviceFacts facts = device_->facts();
  facts.architecture = "sm_52";
  facts.compute_capability = 52;
  try {
    plan_candidates(*make_absent_gpu(facts), sum_of(1 << 20), 1);
    FAIL() << "NVRTC 13 compiles for no Maxwell";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), Names("sm_52", "sm_90", "sm_100"));
  }
}

TEST(AbsentGpuOfAnotherKind, IsRefused) { EXPECT_THROW(make_absent_gpu(two_core_host_facts()), Error); }

}  // namespace
}  // namespace hone
