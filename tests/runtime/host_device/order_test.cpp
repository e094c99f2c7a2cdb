// The order of lanes and blocks can be chosen, and a kernel with a missing barrier notices.
#include "tests/runtime/host_device/host_kernel.h"

#include <algorithm>
#include <numeric>

namespace hone::test {
namespace {

std::vector<int> run(const std::string& source, HostOrder order, const Shape& shape) {
  const auto device = make_host_device(HostOptions{.sm_count = 1, .compiler = {}, .order = order});
  const HostKernel kernel(device, source);
  const DeviceVector<int> out(device, std::vector<int>(shape.grid.x * shape.block.x));
  const DeviceVector<unsigned> counter(device, {0u});
  kernel.launch(shape, out.data(), counter.data());
  return out.values();
}

constexpr HostOrder kForward{};
constexpr HostOrder kReverse{HostOrder::Kind::reverse, 0};
constexpr HostOrder kRandom{HostOrder::Kind::random, 12345};

constexpr char kArrival[] = R"(
extern "C" __global__ void entry(int* out, unsigned* counter) {
  __syncthreads();
  __syncwarp();
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<int>(atomicAdd(counter, 1u));
})";

TEST(HostOrder, LanesAndBlocksRunAsAsked) {
  const Shape shape{.grid = {3}, .block = {64}};
  std::vector<int> expected(192);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(run(kArrival, kForward, shape), expected);
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(run(kArrival, kReverse, shape), expected);
}

TEST(HostOrder, RandomIsReproducible) {
  const Shape shape{.grid = {5}, .block = {64}};
  const auto first = run(kArrival, kRandom, shape);
  EXPECT_EQ(run(kArrival, kRandom, shape), first);
  EXPECT_NE(run(kArrival, {HostOrder::Kind::random, 54321}, shape), first);
  EXPECT_NE(run(kArrival, kForward, shape), first);
  auto sorted = first;
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < 320; ++i) ASSERT_EQ(sorted[static_cast<std::size_t>(i)], i);
}

/// Neighbours exchange values through shared memory.
std::string exchange(bool with_barrier) {
  return std::string(R"(
extern "C" __global__ void entry(int* out, unsigned*) {
  __shared__ int values[64];
  values[threadIdx.x] = threadIdx.x;)") + (with_barrier ? "\n  __syncthreads();" : "") + R"(
  out[threadIdx.x] = values[(threadIdx.x + 1) % 64];
})";
}

#if !defined(__SANITIZE_THREAD__)  // which reports the race itself
TEST(HostOrder, AMissingBarrierShows) {
  const Shape shape{.block = {64}};
  EXPECT_NE(run(exchange(false), kForward, shape), run(exchange(false), kReverse, shape));
}
#endif

TEST(HostOrder, ABarrierMakesResultsEqual) {
  const Shape shape{.block = {64}};
  const auto forward = run(exchange(true), kForward, shape);
  EXPECT_EQ(forward, run(exchange(true), kReverse, shape));
  EXPECT_EQ(forward, run(exchange(true), kRandom, shape));
}

}  // namespace
}  // namespace hone::test
