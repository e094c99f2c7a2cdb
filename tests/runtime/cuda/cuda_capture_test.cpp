#include <algorithm>
#include <cstddef>
#include <vector>

#include <gmock/gmock.h>

#include "tests/runtime/cuda/cuda_test.h"

namespace hone {
namespace {

using testing::Each;
using testing::ElementsAre;

class CudaCaptureTest : public CudaTest {
 protected:
  /// Returns for each edge of a graph without branches, in order, whether it is one of programmatic dependent launch.
  static std::vector<bool> edges_that_overlap(cudaGraph_t graph) {
    std::size_t count = 0;
    EXPECT_EQ(get_edges(graph, nullptr, nullptr, nullptr, &count), cudaSuccess);
    std::vector<cudaGraphNode_t> from(count), to(count);
    std::vector<cudaGraphEdgeData> data(count);
    EXPECT_EQ(get_edges(graph, from.data(), to.data(), data.data(), &count), cudaSuccess);
    std::vector<bool> overlaps;
    cudaGraphNode_t node = nullptr;  // the one that no edge leads to
    for (cudaGraphNode_t each : from)
      if (std::find(to.begin(), to.end(), each) == to.end()) node = each;
    for (auto at = std::find(from.begin(), from.end(), node); at != from.end();
         at = std::find(from.begin(), from.end(), to[static_cast<std::size_t>(at - from.begin())]))
      overlaps.push_back(data[static_cast<std::size_t>(at - from.begin())].type == cudaGraphDependencyTypeProgrammatic);
    return overlaps;
  }
  static cudaError_t get_edges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data,
                               std::size_t* count) {
#if CUDART_VERSION >= 13000
    return cudaGraphGetEdges(graph, from, to, data, count);
#else
    return cudaGraphGetEdges_v2(graph, from, to, data, count);
#endif
  }

  void replay(cudaGraph_t graph, int times) {
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    for (int i = 0; i < times; ++i) ASSERT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
    device_->synchronize(stream_);
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
};

TEST_F(CudaCaptureTest, AStreamTellsWhetherItIsCaptured) {
  EXPECT_FALSE(device_->stream_state(stream_).capturing);
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
    const StreamState state = device_->stream_state(stream_);
    EXPECT_TRUE(state.capturing);
    ids.push_back(state.capture_id);
    EXPECT_FALSE(device_->stream_state(nullptr).capturing);  // stream_ does not block the default stream
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_FALSE(device_->stream_state(stream_).capturing);
}

// The strictest capture mode, code that nothing has launched before: loading must not leave work to the launch.
TEST_F(CudaCaptureTest, ACapturedFirstLaunchIsReplayed) {
  const Binary binary = compile(kAddKernel);
  const Array<int> memory = allocate<int>(100);
  device_->fill_bytes(memory.get(), 0, 400, stream_);
  device_->synchronize(stream_);
  const std::unique_ptr<Module> module = device_->load(binary, {"add"});

  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  device_->launch(module->kernel(0), launch_of(1, 128, memory.get(), 2, 100LL), stream_);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_THAT(fetch(memory, 100), Each(0));
  replay(graph, 3);
  EXPECT_THAT(fetch(memory, 100), Each(6));
}

TEST_F(CudaCaptureTest, CodeCanBeLoadedAndMemoryAllocatedWhileAStreamIsCaptured) {
  const Binary binary = compile(kAddKernel);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  const std::unique_ptr<Module> module = device_->load(binary, {"add"});
  const Array<int> memory = allocate<int>(100);
  allocate<int>(1'000'000);  // and freed at once
  device_->fill_bytes(memory.get(), 0, 400, stream_);
  device_->launch(module->kernel(0), launch_of(1, 128, memory.get(), 2, 100LL), stream_);
  device_->launch(module->kernel(0), launch_of(1, 128, memory.get(), 5, 100LL), stream_);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  replay(graph, 2);
  EXPECT_THAT(fetch(memory, 100), Each(7));
}

TEST_F(CudaCaptureTest, AnotherStreamWorksWhileAStreamIsCaptured) {
  const std::unique_ptr<Module> module = load(kAddKernel, {"add"});
  const Array<int> memory = allocate<int>(100);
  const Stream other = device_->create_stream();
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  device_->fill_bytes(memory.get(), 0, 400, other);
  const double us = device_->time_us(
      other, [&] { device_->launch(module->kernel(0), launch_of(1, 128, memory.get(), 9, 100LL), other); });
  EXPECT_GT(us, 0);
  device_->synchronize(other);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  device_->destroy_stream(other);
  EXPECT_THAT(fetch(memory, 100), Each(9));
}

TEST_F(CudaCaptureTest, TheDefaultStreamCountsAsCapturingBesideABlockingCapture) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  const StreamState state = device_->stream_state(nullptr);
  EXPECT_TRUE(state.capturing);
  EXPECT_EQ(state.capture_id, 0U);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaSuccess) << "asking must not break the capture";
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
  EXPECT_FALSE(device_->stream_state(nullptr).capturing);
}

TEST_F(CudaCaptureTest, ABrokenCaptureStillCountsAsCapturing) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_NE(cudaStreamSynchronize(stream_), cudaSuccess);  // not allowed, and breaks the capture
  static_cast<void>(cudaGetLastError());
  EXPECT_TRUE(device_->stream_state(stream_).capturing);
  cudaGraph_t graph = nullptr;
  EXPECT_NE(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  static_cast<void>(cudaGetLastError());
  EXPECT_FALSE(device_->stream_state(stream_).capturing);
}

TEST_F(CudaCaptureTest, CapturedWorkRunsWhenItIsReplayedAndNotBefore) {
  const std::unique_ptr<Module> module = load(kAddKernel, {"add"});
  const Array<int> memory = allocate<int>(100);
  device_->fill_bytes(memory.get(), 0, 400, stream_);
  const std::unique_ptr<CapturedWork> work = device_->capture(stream_, [&] {
    for (int i = 0; i < 2; ++i)
      device_->launch(module->kernel(0), launch_of(1, 128, memory.get(), 3, 100LL), stream_);
  });
  device_->synchronize(stream_);
  EXPECT_THAT(fetch(memory, 100), Each(0));
  EXPECT_GT(device_->time_us(stream_, [&] { device_->replay(*work, stream_); }), 0);
  device_->replay(*work, stream_);
  device_->synchronize(stream_);
  EXPECT_THAT(fetch(memory, 100), Each(12));
}

// Behind other work an edge of PDL would cost time.
TEST_F(CudaCaptureTest, ADependentLaunchOverlapsOnlyAnotherOne) {
  if (!device_->facts().has_dependent_launch) GTEST_SKIP() << "no dependent launch on this GPU";
  const std::unique_ptr<Module> module = load(R"(extern "C" __global__ void add(int* value) {
  asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
  ++*value;
})",
                                              {"add"});
  const Array<int> memory = allocate<int>(1);
  Launch ordinary = launch_of(1, 1, memory.get()), dependent = ordinary;
  dependent.dependent_launch = true;

  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
    for (const Launch& launch : {dependent, dependent, dependent, ordinary, dependent, dependent})
      device_->launch(module->kernel(0), launch, stream_);
    device_->fill_bytes(memory.get(), 0, sizeof(int), stream_);
    for (int j = 0; j < 2; ++j) device_->launch(module->kernel(0), dependent, stream_);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    EXPECT_THAT(edges_that_overlap(graph), ElementsAre(true, true, false, false, true, false, false, true));
    replay(graph, 2);
    EXPECT_THAT(fetch(memory, 1), Each(2));
  }
}

TEST_F(CudaCaptureTest, WorkThatThrowsEndsItsCapture) {
  EXPECT_THROW(device_->capture(stream_, [] { throw std::logic_error("no"); }), std::logic_error);
  EXPECT_FALSE(device_->stream_state(stream_).capturing);
  EXPECT_NE(device_->capture(stream_, [] {}), nullptr);
}

}  // namespace
}  // namespace hone
