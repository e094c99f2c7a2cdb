// tuned_reduce() under stream capture on a GPU: cold and warm sessions, graphs that are replayed.
#include <cuda_runtime_api.h>

#include <numeric>

#include "tests/runtime/support/device_fixture.h"

namespace hone {
namespace {

class ReduceCapture : public DeviceTest {
 protected:
  static constexpr std::int64_t kCount = 300000;

  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    stream_ = device_->create_stream();
    values_ = random_values<std::int32_t>(kCount);
    expected_ = std::accumulate(values_.begin(), values_.end(), std::int64_t{0});
    in_ = upload(values_);
    out_ = DeviceBuffer(device_, 2 * sizeof(std::int64_t));
  }
  void TearDown() override {
    if (stream_) device_->destroy_stream(stream_);
  }

  cudaGraphExec_t capture(const std::function<void()>& work) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
    work();
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
    return executable;
  }

  void expect_replays(cudaGraphExec_t graph) {
    for (int i = 0; i < 10; ++i) {
      device_->fill_bytes(out_.data(), 0x5a, out_.size_bytes(), stream_);
      EXPECT_EQ(cudaGraphLaunch(graph, stream_), cudaSuccess);
      EXPECT_EQ(fetch(out_.as<std::int64_t>(), stream_), expected_);
    }
    cudaGraphExecDestroy(graph);
  }

  Stream stream_ = nullptr;
  std::vector<std::int32_t> values_;
  std::int64_t expected_ = 0;
  Array<std::int32_t> in_;
  DeviceBuffer out_;
};

TEST_F(ReduceCapture, AColdSessionServesTheHeuristic) {
  Session session(device_, {.on_miss = MissPolicy::tune, .cache_path = {}});
  expect_replays(capture([&] {
    const Choice choice = tuned_reduce(session, sum, in_.data, kCount, out_.as<std::int64_t>(), stream_);
    EXPECT_EQ(choice.source, ChoiceSource::heuristic);
  }));
  EXPECT_EQ(tuned_reduce(session, sum, in_.data, kCount, out_.as<std::int64_t>(), stream_).source, ChoiceSource::tuned);
  EXPECT_EQ(fetch(out_.as<std::int64_t>(), stream_), expected_);
}

TEST_F(ReduceCapture, AWarmSessionServesItsWinner) {
  Session session(device_, {.on_miss = MissPolicy::tune, .cache_path = {}});
  session.prepare(reduce_problem(ReduceOp::sum, DType::i32, kCount));
  expect_replays(capture([&] {
    const Choice choice = tuned_reduce(session, sum, in_.data, kCount, out_.as<std::int64_t>(), stream_);
    EXPECT_EQ(choice.source, ChoiceSource::memory);
  }));
}

TEST_F(ReduceCapture, AGraphAndItsStreamRunSideBySide) {
  Session session(device_, quick());
  const cudaGraphExec_t graph = capture([&] {
    tuned_reduce(session, sum, in_.data, kCount, out_.as<std::int64_t>(), stream_);
  });
  const Stream other = device_->create_stream();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(cudaGraphLaunch(graph, other), cudaSuccess);
    tuned_reduce(session, sum, in_.data, kCount, out_.as<std::int64_t>() + 1, stream_);
    EXPECT_EQ(fetch(out_.as<std::int64_t>(), other), expected_);
    EXPECT_EQ(fetch(out_.as<std::int64_t>() + 1, stream_), expected_);
  }
  device_->destroy_stream(other);
  cudaGraphExecDestroy(graph);
}

TEST_F(ReduceCapture, APlanMayBeCaptured) {
  Session session(device_, quick());
  const Problem problem = reduce_problem(ReduceOp::sum, DType::i32, kCount);
  const Plan plan = session.make_plan(problem);
  const std::array<void*, 2> buffers{in_.data, out_.data()};
  expect_replays(capture([&] { plan.launch(problem, buffers, stream_); }));
}

}  // namespace
}  // namespace hone
