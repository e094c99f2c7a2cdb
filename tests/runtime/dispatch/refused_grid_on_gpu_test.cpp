// Rows that all SMs hold together, called in a stream that has half of the SMs: another policy serves the call.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <hone/softmax.h>

#include "tests/runtime/support/device_fixture.h"
#include "tests/runtime/support/green_stream.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using testing::SizeIs;
using test::Names;

class RefusedGridOnGpu : public DeviceTest {
 protected:
  static constexpr std::int64_t kRows = 3, kColumns = 1 << 20;

  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    if (device_->facts().compute_capability < 90) GTEST_SKIP() << "grids hold rows from compute capability 9.0 on";
    green_ = std::make_unique<GreenStream>();
    if (!green_->get()) GTEST_SKIP() << "there are no green contexts";
    in_ = upload(random_values<float>(kRows * kColumns));
    out_ = DeviceBuffer(device_, kRows * kColumns * sizeof(float));
    SessionOptions options = quick();
    options.report_refused_grid = [this](std::string_view message) { said_.emplace_back(message); };
    session_ = std::make_unique<Session>(device_, options);
    for (const LaunchContext context : {LaunchContext::stream, LaunchContext::graph}) hold_rows(context);
    expected_ = softmax(nullptr);
    EXPECT_TRUE(said_.empty());
  }

  /// Dispatches the calls to a grid that holds rows.
  void hold_rows(LaunchContext context) {
    Problem problem = softmax_problem({}, SoftmaxShape::rows(kRows, kColumns));
    problem.launch_context = context;
    const Policy policy =
        problem.family->space()
            .parse("scope=grid combine=held ring_kib=216 row_groups=1 block_threads=1024 packs_per_thread=4 "
                   "min_blocks=1")
            .value();
    const Tuning tuning = session_->tune(
        problem, {.budget = std::chrono::milliseconds(200), .only = {{policy, {}}}, .verify = false});
    ASSERT_TRUE(tuning.winner);
  }

  bool is_cooperative(const Choice& choice) const {
    const Problem problem = softmax_problem({}, SoftmaxShape::rows(kRows, kColumns));
    return problem.family->shape(problem, choice.winner->candidate.policy).cooperative;
  }

  Choice enqueue(Stream stream) {
    return tuned_softmax(*session_, {}, in_.data, SoftmaxShape::rows(kRows, kColumns), out_.data(), stream);
  }
  std::vector<float> softmax(Stream stream) {
    device_->fill_bytes(out_.data(), 0xff, out_.size_bytes(), stream);
    choice_ = enqueue(stream);
    return results(stream);
  }
  std::vector<float> results(Stream stream) {
    std::vector<float> values(kRows * kColumns);
    device_->copy_to_host(values.data(), out_.data(), out_.size_bytes(), stream);
    device_->synchronize(stream);
    return values;
  }

  void expect_right(const std::vector<float>& found) const {
    double worst = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
      worst = std::max(worst, std::isnan(found[i]) ? 1.0 : std::fabs(found[i] / expected_[i] - 1.0));
    EXPECT_LT(worst, 1e-5);
  }

  std::unique_ptr<GreenStream> green_;
  std::unique_ptr<Session> session_;
  Array<float> in_;
  DeviceBuffer out_;
  std::vector<float> expected_;
  std::vector<std::string> said_;
  Choice choice_;
};

TEST_F(RefusedGridOnGpu, AStreamOfHalfOfTheSmsIsServedByAnotherPolicy) {
  EXPECT_TRUE(is_cooperative(choice_));
  expect_right(softmax(green_->get()));
  EXPECT_FALSE(is_cooperative(choice_));
  expect_right(softmax(green_->get()));
  EXPECT_EQ(choice_.source, ChoiceSource::memory);
  expect_right(softmax(nullptr));
  EXPECT_EQ(session_->counters().refused_grids, 1u);
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], Names("softmax", "held", "3×1048576", "green contexts"));
}

TEST_F(RefusedGridOnGpu, ACaptureInAStreamOfHalfOfTheSmsGoesOn) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(green_->get(), cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_FALSE(is_cooperative(enqueue(green_->get())));
  ASSERT_EQ(cudaStreamEndCapture(green_->get(), &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  for (int i = 0; i < 3; ++i) {
    device_->fill_bytes(out_.data(), 0xff, out_.size_bytes(), green_->get());
    EXPECT_EQ(cudaGraphLaunch(executable, green_->get()), cudaSuccess);
    expect_right(results(green_->get()));
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  EXPECT_EQ(session_->counters().refused_grids, 1u);
}

}  // namespace
}  // namespace hone
