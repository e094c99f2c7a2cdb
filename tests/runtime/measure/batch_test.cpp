#include "runtime/measure/batch.h"

#include <gtest/gtest.h>

#include <hone/error.h>

#include "runtime/choose/compiled.h"
#include "tests/runtime/support/fake_device.h"
#include "tests/runtime/support/total_family.h"

namespace hone {
namespace {

class BatchTest : public testing::Test {
 protected:
  LoadedCandidate load(const Policy& policy = {128, 1, 0}) {
    const Unit unit = unit_of(problem_, policy);
    auto binary = std::make_shared<const Binary>(device_->compile(unit));
    return {{policy, {8}}, load_policy(*device_, problem_, policy, unit, binary).module};
  }
  int launches() const {
    int sum = 0;
    for (const auto& [source, count] : device_->launches()) sum += count;
    return sum;
  }
  void in_graph() { problem_.launch_context = LaunchContext::graph; }

  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
  TotalFamily family_;
  Problem problem_ = family_.problem(1000);
  Workspaces workspaces_{device_, kWorkspaceBytes, nullptr};
};

TEST_F(BatchTest, AStreamProblemIsEnqueuedEachTime) {
  device_->script = [](std::string_view) { return FakeKernel{.us = 7, .graph_us = 3}; };
  const LoadedCandidate loaded = load();
  Workload workload(device_, problem_, nullptr);
  const Bench bench{*device_, problem_, workload, workspaces_, nullptr};
  Batch batch(bench, loaded, 10);
  EXPECT_NEAR(batch.time_us(), 7, 1e-9);
  EXPECT_NEAR(batch.time_us(), 7, 1e-9);
  EXPECT_EQ(device_->captures(), 0);
  EXPECT_EQ(device_->holds(), 2) << "the device begins when all is there";
  EXPECT_EQ(launches(), 20);
}

TEST_F(BatchTest, CallsInAStreamCountAsAtLeastWhatEnqueueingThemTakes) {
  device_->script = [](std::string_view) { return FakeKernel{.us = 1}; };
  const LoadedCandidate loaded = load();
  Workload workload(device_, problem_, nullptr);
  const auto us = [&](double enqueue_us) {
    const Bench bench{*device_, problem_, workload, workspaces_, nullptr, {}, enqueue_us};
    return Batch(bench, loaded, 10).time_us();
  };
  EXPECT_NEAR(us(0.5), 1, 1e-9);
  EXPECT_NEAR(us(2.5), 2.5, 1e-9);
  in_graph();
  EXPECT_NEAR(us(2.5), 1, 1e-9);
}

TEST_F(BatchTest, AGraphProblemIsCapturedOnceAndReplayed) {
  device_->script = [](std::string_view) { return FakeKernel{.us = 7, .graph_us = 3}; };
  in_graph();
  const LoadedCandidate loaded = load();
  Workload workload(device_, problem_, nullptr);
  const Bench bench{*device_, problem_, workload, workspaces_, nullptr};
  Batch batch(bench, loaded, 10);
  EXPECT_NEAR(batch.time_us(), 3, 1e-9);
  EXPECT_NEAR(batch.time_us(), 3, 1e-9);
  EXPECT_EQ(device_->captures(), 1);
  EXPECT_EQ(device_->holds(), 2);
  EXPECT_EQ(launches(), 20);
}

TEST_F(BatchTest, EachTurnHasAWorkspaceUntilTheyComeAgain) {
  EXPECT_NE(workspaces_.of_turn(0), workspaces_.of_turn(1));
  EXPECT_EQ(workspaces_.of_turn(1), workspaces_.of_turn(1 + Workspaces::kCount));
  EXPECT_EQ(Workspaces(device_, 0, nullptr).of_turn(1), nullptr);
  in_graph();
  constexpr int kAll = Workspaces::kCount;
  Workload workload(device_, problem_, nullptr);
  const Bench bench{*device_, problem_, workload, workspaces_, nullptr};
  const auto captures_of = [&](const Policy& policy) {
    const LoadedCandidate loaded = load(policy);
    const int before = device_->captures();
    Batch batch(bench, loaded, 10);
    for (std::size_t turn = 0; turn < 2 * kAll; ++turn) batch.time_us(turn);
    return device_->captures() - before;
  };
  EXPECT_EQ(captures_of({128, 1, 0}), 1) << "it needs no workspace";
  EXPECT_EQ(captures_of({128, 1, 1}), kAll);
}

TEST_F(BatchTest, AFailureLeavesNothingInAnyWorkspace) {
  const LoadedCandidate loaded = load();
  Workload workload(device_, problem_, nullptr);
  const Bench bench{*device_, problem_, workload, workspaces_, nullptr};
  for (std::size_t turn = 0; turn < Workspaces::kCount; ++turn) *static_cast<unsigned*>(workspaces_.of_turn(turn)) = 7;
  bench.require_alive(loaded.candidate, Error(ErrorCode::device_failed, "it was not launched"));
  for (std::size_t turn = 0; turn < Workspaces::kCount; ++turn)
    EXPECT_EQ(*static_cast<const unsigned*>(workspaces_.of_turn(turn)), 0u) << turn;
}

TEST_F(BatchTest, AReplayFindsTheCacheDisplacedUnlessItsInputFillsIt) {
  for (const std::int64_t n : {1000, 40000}) {  // copies of 4000 bytes, or one of 160000; 64 KiB of L2
    problem_ = family_.problem(n);
    in_graph();
    const LoadedCandidate loaded = load();
    Workload workload(device_, problem_, nullptr);
    const Bench bench{*device_, problem_, workload, workspaces_, nullptr};
    const std::size_t before = device_->live_allocations();
    Batch batch(bench, loaded, 40);
    batch.time_us();
    batch.time_us();
    EXPECT_EQ(device_->live_allocations(), before + (n == 1000 ? 1 : 0)) << n;
  }
}

TEST_F(BatchTest, AFailingLaunchEndsTheCaptureAndIsThrown) {
  device_->script = [](std::string_view) { return FakeKernel{.fails_at_launch = 1}; };
  in_graph();
  const LoadedCandidate loaded = load();
  Workload workload(device_, problem_, nullptr);
  const Bench bench{*device_, problem_, workload, workspaces_, nullptr};
  Batch batch(bench, loaded, 2);
  EXPECT_THROW(batch.time_us(), Error);
  EXPECT_FALSE(device_->stream_state(nullptr).capturing);
}

}  // namespace
}  // namespace hone
