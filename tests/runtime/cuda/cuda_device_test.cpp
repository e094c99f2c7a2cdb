#include <gmock/gmock.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include <cuda.h>
#include <hone/error.h>

#include "runtime/device/cuda/cuda_comparison.h"
#include "tests/runtime/cuda/cuda_test.h"
#include "tests/runtime/support/green_stream.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using testing::Each;
using test::Names;
using testing::StartsWith;

using CudaDeviceTest = CudaTest;

TEST_F(CudaDeviceTest, HasAName) { EXPECT_EQ(device_->name(), "cuda:0"); }

TEST_F(CudaDeviceTest, ThatDoesNotExistIsNotFound) {
  for (const int ordinal : {-1, 1000}) {
    try {
      make_cuda_device(ordinal);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_found);
      EXPECT_THAT(error.what(), Names("cuda:" + std::to_string(ordinal), "cuda:0"));
    }
  }
}

TEST_F(CudaDeviceTest, FactsAreThoseOfTheDriver) {
  const DeviceFacts& facts = device_->facts();
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(facts.kind, "cuda");
  EXPECT_EQ(facts.name, properties.name);
  EXPECT_EQ(facts.compute_capability, 10 * properties.major + properties.minor);
  EXPECT_EQ(facts.architecture, "sm_" + std::to_string(facts.compute_capability));
  EXPECT_EQ(facts.sm_count, properties.multiProcessorCount);
  EXPECT_EQ(facts.warp_threads, 32);
  EXPECT_EQ(facts.max_threads_per_block, properties.maxThreadsPerBlock);
  EXPECT_EQ(facts.max_threads_per_sm, properties.maxThreadsPerMultiProcessor);
  EXPECT_EQ(facts.max_blocks_per_sm, properties.maxBlocksPerMultiProcessor);
  EXPECT_EQ(facts.registers_per_sm, properties.regsPerMultiprocessor);
  EXPECT_EQ(facts.registers_per_block, properties.regsPerBlock);
  EXPECT_EQ(static_cast<std::size_t>(facts.smem_bytes_per_sm), properties.sharedMemPerMultiprocessor);
  EXPECT_EQ(static_cast<std::size_t>(facts.smem_bytes_per_block), properties.sharedMemPerBlock);
  EXPECT_EQ(static_cast<std::size_t>(facts.smem_bytes_per_block_optin), properties.sharedMemPerBlockOptin);
  EXPECT_EQ(static_cast<std::size_t>(facts.smem_bytes_reserved_per_block), properties.reservedSharedMemPerBlock);
  EXPECT_EQ(facts.l2_bytes, properties.l2CacheSize);
  EXPECT_EQ(static_cast<std::size_t>(facts.memory_bytes), properties.totalGlobalMem);
  EXPECT_EQ(facts.memory_bus_bits, properties.memoryBusWidth);
  EXPECT_GE(facts.memory_clock_khz, 0);
  EXPECT_THAT(facts.driver, testing::MatchesRegex("[0-9]+\\.[0-9]+"));
}

TEST_F(CudaDeviceTest, NamesItsCompiler) { EXPECT_THAT(device_->compiler_identity(), StartsWith("libnvrtc")); }

TEST_F(CudaDeviceTest, AStreamThatIsDoneComesBack) {
  const Stream first = device_->create_stream();
  const Stream second = device_->create_stream();
  EXPECT_NE(first, second);
  device_->destroy_stream(second);
  device_->destroy_stream(first);
  EXPECT_EQ(device_->create_stream(), first);
  EXPECT_EQ(device_->create_stream(), second);
  device_->destroy_stream(first);
  device_->destroy_stream(second);
}

TEST_F(CudaDeviceTest, AStreamThatIsCapturingOrBusyDoesNotComeBack) {
  const Stream capturing = device_->create_stream();
  ASSERT_EQ(cudaStreamBeginCapture(capturing, cudaStreamCaptureModeRelaxed), cudaSuccess);
  device_->destroy_stream(capturing);
  const Stream busy = device_->create_stream();
  EXPECT_FALSE(device_->stream_state(busy).capturing);

  const std::unique_ptr<Module> module = load(kSpinKernel, {"spin"});
  device_->launch(module->kernel(0), launch_of(1, 1, 200'000'000ULL), busy);
  device_->destroy_stream(busy);
  const Stream idle = device_->create_stream();
  EXPECT_EQ(cudaStreamQuery(idle), cudaSuccess);
  device_->destroy_stream(idle);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(CudaDeviceTest, DependentLaunchesSeeTheWorkAheadOfThem) {
  if (!device_->facts().has_dependent_launch) GTEST_SKIP() << "needs compute capability 9.0";
  const std::unique_ptr<Module> module = load(R"(extern "C" __global__ void add(int* values, int step, long long n) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < n) values[i] += step;
}
)", {"add"});
  const Array<int> memory = allocate<int>(100);
  device_->fill_bytes(memory.get(), 0, 400, stream_);
  Launch launch = launch_of(1, 128, memory.get(), 1, 100LL);
  launch.dependent_launch = true;
  for (int i = 0; i < 100; ++i) device_->launch(module->kernel(0), launch, stream_);
  EXPECT_THAT(fetch(memory, 100), Each(100));
  const auto graph = device_->capture(stream_, [&] {
    for (int i = 0; i < 20; ++i) device_->launch(module->kernel(0), launch, stream_);
  });
  device_->replay(*graph, stream_);
  EXPECT_THAT(fetch(memory, 100), Each(120));
}

TEST_F(CudaDeviceTest, BlocksOfACooperativeGridAreResidentAtOnceOrRefused) {
  const std::unique_ptr<Module> module = load(R"(extern "C" __global__ void meet(unsigned* arrived) {
  if (threadIdx.x != 0) return;
  const unsigned before = atomicAdd(arrived, 1);
  while (atomicAdd(arrived, 0) < (before / gridDim.x + 1) * gridDim.x) {}
}
)", {"meet"});
  const Array<unsigned> memory = allocate<unsigned>(1);
  device_->fill_bytes(memory.get(), 0, sizeof(unsigned), stream_);
  const auto sms = static_cast<unsigned>(device_->facts().sm_count);
  Launch launch = launch_of(sms, 1024, memory.get());
  launch.cooperative = true;
  launch.dependent_launch = true;  // which it is not then
  for (int i = 0; i < 3; ++i) device_->launch(module->kernel(0), launch, stream_);
  EXPECT_THAT(fetch(memory, 1), Each(3 * sms));
  const auto graph = device_->capture(stream_, [&] { device_->launch(module->kernel(0), launch, stream_); });
  device_->replay(*graph, stream_);
  EXPECT_THAT(fetch(memory, 1), Each(4 * sms));
  launch.grid.x = 3 * sms;
  EXPECT_THROW(device_->launch(module->kernel(0), launch, stream_), NotResident);
  const auto after_a_refusal = device_->capture(stream_, [&] {
    EXPECT_THROW(device_->launch(module->kernel(0), launch, stream_), NotResident);
    launch.grid.x = sms;
    device_->launch(module->kernel(0), launch, stream_);
  });
  device_->replay(*after_a_refusal, stream_);
  EXPECT_THAT(fetch(memory, 1), Each(5 * sms));
}

TEST_F(CudaDeviceTest, ACooperativeGridIsRefusedInAStreamOfFewerSms) {
  const GreenStream green;
  if (!green.get()) GTEST_SKIP() << "there are no green contexts";
  const std::unique_ptr<Module> module = load(R"(extern "C" __global__ void meet(unsigned* arrived) {
  if (threadIdx.x != 0) return;
  atomicAdd(arrived, 1);
  while (atomicAdd(arrived, 0) < gridDim.x) {}
}
)", {"meet"});
  const Array<unsigned> memory = allocate<unsigned>(1);
  const auto fetch_in_green = [&] {
    device_->synchronize(green.get());
    return fetch(memory, 1);
  };
  const auto clear = [&] { device_->fill_bytes(memory.get(), 0, sizeof(unsigned), green.get()); };
  const int resident = device_->resident_blocks(module->kernel(0), 1024, 0);
  Launch launch = launch_of(0, 1024, memory.get());
  launch.cooperative = true;
  const auto launch_grid = [&](unsigned on_sms) {
    launch.grid.x = on_sms * static_cast<unsigned>(resident);
    device_->launch(module->kernel(0), launch, green.get());
  };
  const auto sms = static_cast<unsigned>(device_->facts().sm_count);
  clear();
  EXPECT_THROW(launch_grid(sms), NotResident);
  launch_grid(green.sms());
  EXPECT_THAT(fetch_in_green(), Each(launch.grid.x));
  clear();
  const auto graph = device_->capture(green.get(), [&] {
    EXPECT_THROW(launch_grid(sms), NotResident) << "its replay would never end";
    launch_grid(green.sms());
  });
  device_->replay(*graph, green.get());
  EXPECT_THAT(fetch_in_green(), Each(launch.grid.x));
  EXPECT_EQ(device_->usable_sms(), device_->facts().sm_count) << "of the primary context";
}

TEST_F(CudaDeviceTest, LaunchesClustersUpToTheLargest) {
  const int most = device_->facts().max_cluster_blocks;
  if (most == 0) GTEST_SKIP() << "needs compute capability 9.0";
  const std::unique_ptr<Module> module = load(R"(extern "C" __global__ void size(unsigned* out) {
  unsigned blocks;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
  out[blockIdx.x] = blocks;
}
)", {"size"});
  const Array<unsigned> memory = allocate<unsigned>(32);
  for (unsigned blocks = 1; blocks <= static_cast<unsigned>(most); blocks *= 2) {
    Launch launch = launch_of(32, 32, memory.get());
    launch.cluster_blocks = blocks;
    device_->launch(module->kernel(0), launch, stream_);
    EXPECT_THAT(fetch(memory, 32), Each(blocks));
  }
  Launch too_large = launch_of(64, 32, memory.get());
  too_large.cluster_blocks = 64;
  EXPECT_THROW(device_->launch(module->kernel(0), too_large, stream_), Error);
}

TEST_F(CudaDeviceTest, TimesWorkOnAStream) {
  const std::unique_ptr<Module> module = load(kSpinKernel, {"spin"});
  const double us = device_->time_us(stream_, [&] {
    for (int i = 0; i < 3; ++i) device_->launch(module->kernel(0), launch_of(1, 1, 2'000'000ULL), stream_);
  });
  EXPECT_GE(us, 5'900);
  EXPECT_LT(us, 60'000);
}

TEST_F(CudaDeviceTest, WhatTheHostTakesToEnqueueHeldWorkIsNotTimed) {
  using std::chrono_literals::operator""ms;
  const auto flag = allocate<int>(1);
  const auto fill_slowly = [&] {
    std::unique_ptr<StreamHold> hold = device_->hold(stream_);
    return device_->time_us(stream_, [&] {
      device_->fill_bytes(flag.get(), 1, sizeof(int), stream_);
      std::this_thread::sleep_for(4ms);
      device_->fill_bytes(flag.get(), 2, sizeof(int), stream_);
      hold.reset();
    });
  };
  fill_slowly();
  EXPECT_LT(fill_slowly(), 3000);
  EXPECT_EQ(fetch(flag, 1).front(), 0x02020202);
}

TEST_F(CudaDeviceTest, AHoldThatIsForgottenEndsByItself) {
  const std::unique_ptr<StreamHold> hold = device_->hold(stream_);
  const auto start = std::chrono::steady_clock::now();
  device_->synchronize(stream_);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST_F(CudaDeviceTest, TimingNothingTakesNoTime) {
  EXPECT_GE(device_->time_us(stream_, [] {}), 0);
  EXPECT_LT(device_->time_us(stream_, [] {}), 1'000);
}

TEST_F(CudaDeviceTest, AnExceptionFromTimedWorkIsPassedOn) {
  EXPECT_THROW(device_->time_us(stream_, [] { throw std::logic_error("no"); }), std::logic_error);
  EXPECT_GE(device_->time_us(stream_, [] {}), 0);
}

TEST_F(CudaDeviceTest, SeveralThreadsUseItAtOnce) {
  const std::unique_ptr<Module> module = load(kAddKernel, {"add"});
  constexpr int kThreads = 8;
  constexpr int kRounds = 50;
  constexpr std::size_t kCount = 10'000;
  std::vector<std::vector<int>> results(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        const Stream stream = device_->create_stream();
        const Array<int> memory = allocate<int>(kCount);
        device_->fill_bytes(memory.get(), 0, kCount * sizeof(int), stream);
        for (int round = 0; round < kRounds; ++round) {
          const Array<int> other = allocate<int>(kCount);
          device_->time_us(stream, [&] {
            device_->launch(module->kernel(0), launch_of(40, 256, memory.get(), thread, static_cast<long long>(kCount)),
                            stream);
          });
        }
        std::vector<int>& result = results[static_cast<std::size_t>(thread)];
        result.resize(kCount);
        device_->copy_to_host(result.data(), memory.get(), kCount * sizeof(int), stream);
        device_->synchronize(stream);
        device_->destroy_stream(stream);
      });
    }
  }
  for (int thread = 0; thread < kThreads; ++thread) {
    EXPECT_THAT(results[static_cast<std::size_t>(thread)], Each(kRounds * thread));
  }
}

TEST_F(CudaDeviceTest, LeavesTheCurrentDeviceAsItWas) {
  std::string reason;
  if (cuda_device_count(reason) < 2) GTEST_SKIP() << "there is one CUDA device";
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const Array<int> memory = allocate<int>(10);
  device_->fill_bytes(memory.get(), 0, 40, stream_);
  EXPECT_THAT(fetch(memory, 10), Each(0));
  const std::unique_ptr<Module> module = load(kAddKernel, {"add"});
  device_->launch(module->kernel(0), launch_of(1, 32, memory.get(), 5, 10LL), stream_);
  EXPECT_THAT(fetch(memory, 10), Each(5));
  int current = -1;
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 1);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(CudaDeviceTest, AThreadThatHasNotUsedCudaYetLaunches) {
  const std::unique_ptr<Module> module = load(kAddKernel, {"add"});
  const Array<int> memory = allocate<int>(10);
  for (const Stream stream : {Stream{nullptr}, stream_}) {
    device_->fill_bytes(memory.get(), 0, 40, stream);
    std::jthread([&] {
      EXPECT_FALSE(device_->stream_state(stream).capturing);
      device_->launch(module->kernel(0), launch_of(1, 32, memory.get(), 5, 10LL), stream);
    }).join();
    device_->synchronize(stream);
    EXPECT_THAT(fetch(memory, 10), Each(5));
  }
}

/// A function of the driver, with its interface of that version of CUDA.
template <class Function>
Function* driver_function(const char* symbol, unsigned version) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(symbol, &address, version, cudaEnableDefault, &found), cudaSuccess);
  return reinterpret_cast<Function*>(address);
}

TEST_F(CudaDeviceTest, AKernelIsLaunchedInAnotherContextThanTheOneWhereItWasLoaded) {
  const std::unique_ptr<Module> module = load(kAddKernel, {"add"});
  auto* const create = driver_function<CUresult(CUcontext*, unsigned, CUdevice)>("cuCtxCreate", 3020);
  auto* const destroy = driver_function<CUresult(CUcontext)>("cuCtxDestroy", 4000);
  ASSERT_TRUE(create && destroy);
  CUcontext context = nullptr;
  ASSERT_EQ(create(&context, 0, 0), CUDA_SUCCESS);  // and makes it current
  void* values = nullptr;
  ASSERT_EQ(cudaMalloc(&values, sizeof(int)), cudaSuccess);
  ASSERT_EQ(cudaMemset(values, 0, sizeof(int)), cudaSuccess);
  device_->launch(module->kernel(0), launch_of(1, 32, static_cast<int*>(values), 5, 1LL), nullptr);
  int value = 0;
  EXPECT_EQ(cudaMemcpy(&value, values, sizeof(int), cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(value, 5);
  EXPECT_EQ(destroy(context), CUDA_SUCCESS);
}

TEST_F(CudaDeviceTest, TheDefaultStreamWorks) {
  const std::unique_ptr<Module> module = load(kAddKernel, {"add"});
  const Array<int> memory = allocate<int>(100);
  device_->fill_bytes(memory.get(), 0, 400, nullptr);
  device_->launch(module->kernel(0), launch_of(1, 128, memory.get(), 3, 100LL), nullptr);
  device_->synchronize(nullptr);
  EXPECT_FALSE(device_->stream_state(nullptr).capturing);
  EXPECT_THAT(fetch(memory, 100), Each(3));
}

TEST_F(CudaDeviceTest, ANumberIsNoOtherStreamsLater) {
  std::set<std::uint64_t> ids{device_->stream_state(nullptr).id};
  EXPECT_EQ(device_->stream_state(cudaStreamLegacy).id, *ids.begin());
  std::size_t expected = 1;
  for (int i = 0; i < 5; ++i, expected += 2) {
    cudaStream_t stream = nullptr;  // its handle is likely to be the last one's
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ids.insert(device_->stream_state(stream).id);
    ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    std::thread([&] { ids.insert(device_->stream_state(cudaStreamPerThread).id); }).join();
  }
  EXPECT_EQ(ids.size(), expected);
}

TEST_F(CudaDeviceTest, DifferencesAreFoundOnTheDevice) {
  std::vector<std::uint8_t> found(3 << 20, 0xfe);
  found[2'999'999] = found[3'000'000] = 1;
  const std::vector<std::uint8_t> expected{0xfe};
  const DeviceBuffer bytes(device_, found), pattern(device_, expected);
  const RepeatedBytes run{.found = bytes.as<std::byte>(),
                          .bytes = found.size(),
                          .expected = std::as_bytes(std::span(expected)),
                          .expected_on_device = pattern.as<std::byte>()};
  const std::vector<RepeatedBytes> runs{run, {.found = run.found, .bytes = 2'999'999, .expected = run.expected,
                                              .expected_on_device = run.expected_on_device}};
  CudaComparison comparison(*device_, 0);
  EXPECT_THAT(comparison.first_differences(runs, nullptr),
              testing::Optional(testing::ElementsAre(2'999'999, 2'999'999)));
  EXPECT_THAT(device_->first_differences(runs, nullptr), testing::ElementsAre(2'999'999, 2'999'999)) << "by copying";
}

TEST_F(CudaDeviceTest, LimitsAreMeasuredOnce) {
  const DeviceLimits limits = device_->limits();
  std::printf("limits: %.2f us to enqueue, %.2f us in a stream, %.2f us in a graph, %.0f GB/s of %.0f\n",
              limits.enqueue_us, limits.stream_launch_us, limits.graph_launch_us, limits.read_gbps,
              peak_bandwidth_gbps(device_->facts()));
  if (limits.enqueue_us > 15) GTEST_SKIP() << "a tool watches each launch";
  EXPECT_GT(limits.enqueue_us, 0.5);
  EXPECT_GT(limits.stream_launch_us, 0.2);
  EXPECT_LT(limits.stream_launch_us, 10);
  EXPECT_GT(limits.graph_launch_us, 0.2);
  EXPECT_LE(limits.graph_launch_us, limits.stream_launch_us * 1.2);
  if (peak_bandwidth_gbps(device_->facts()) > 0) {
    EXPECT_GT(limits.read_gbps, 0.7 * peak_bandwidth_gbps(device_->facts()));
    EXPECT_LT(limits.read_gbps, peak_bandwidth_gbps(device_->facts()));
  }
  EXPECT_EQ(device_->limits().read_gbps, limits.read_gbps);
}

}  // namespace
}  // namespace hone
