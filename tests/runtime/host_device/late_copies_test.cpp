// Asynchronous copies land late and out of order, and kernels that do not wait for them notice.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // where they land at once

#include "tests/runtime/host_device/host_kernel.h"
#include "tests/support/names.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace hone::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;

constexpr HostCopies kAtOnce{HostCopies::Kind::at_once};
constexpr HostCopies late(std::uint64_t seed) { return {HostCopies::Kind::late, seed}; }

constexpr int kSlots = 32;

/// Thread 0 of each block starts a copy of four integers to each slot. In the code `use`, landed(i) tells whether slot
/// i has landed.
std::string bulk_kernel(const std::string& use) {
  return R"(
extern "C" __global__ void entry(const int* in, int* out) {
  __shared__ int slots[32][4];
  __shared__ unsigned long long arrivals[32];
  if (threadIdx.x < 32) arrivals[threadIdx.x] = 0;
  __syncthreads();
  const auto landed = [](unsigned i) { return atomicAdd(arrivals + i, 0ull) != 0; };
  if (threadIdx.x == 0)
    for (int i = 0; i < 32; ++i) hone_host::start_bulk_copy(slots[i], in + 4 * i, 16, arrivals + i);
  out += 32 * blockIdx.x;
  )" + use + "\n}";
}

constexpr char kWaits[] = R"(
  if (threadIdx.x < 32) {
    while (!landed(threadIdx.x)) __nanosleep(0);
    __threadfence_block();
    out[threadIdx.x] = slots[threadIdx.x][3];
  })";

constexpr char kReadsAtOnce[] = "if (threadIdx.x == 0) for (int i = 0; i < 32; ++i) out[i] = slots[i][3];";

constexpr char kWaitsBehind[] = "while (!landed(threadIdx.x % 32)) __nanosleep(0);";

/// Which slot landed as the i-th.
constexpr char kNotesTheOrder[] = R"(
  if (threadIdx.x == 0) {
    unsigned seen = 0;
    for (int count = 0; count < 32; __nanosleep(0))
      for (int i = 0; i < 32; ++i)
        if ((seen >> i & 1) == 0 && landed(i)) {
          seen |= 1u << i;
          out[count++] = i;
        }
  })";

Binary compiled(const std::string& source) {
  return make_host_device()->compile({"test unit", source, {}, {"entry"}});
}

std::vector<int> run(const Binary& binary, HostCopies copies, const Shape& shape = {}) {
  const auto device = make_host_device(HostOptions{.sm_count = 1, .compiler = {}, .order = {}, .copies = copies});
  const HostKernel kernel(device, binary);
  std::vector<int> values(4 * kSlots);
  std::iota(values.begin(), values.end(), 0);
  const DeviceVector<int> in(device, values);
  const DeviceVector<int> out(device, std::vector<int>(kSlots * shape.grid.x));
  kernel.launch(shape, static_cast<const int*>(in.data()), out.data());
  return out.values();
}

/// The last integer of each slot, for each block.
std::vector<int> expected(unsigned blocks = 1) {
  std::vector<int> values;
  for (unsigned i = 0; i < kSlots * blocks; ++i) values.push_back(static_cast<int>(i % kSlots * 4 + 3));
  return values;
}

TEST(LateCopies, LandInAnOrderThatTheSeedDecides) {
  const Binary binary = compiled(bulk_kernel(kNotesTheOrder));
  std::vector<int> ascending(kSlots);
  std::iota(ascending.begin(), ascending.end(), 0);
  EXPECT_EQ(run(binary, kAtOnce), ascending);
  std::set<std::vector<int>> orders;
  std::set<int> last;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const std::vector<int> order = run(binary, late(seed));
    EXPECT_EQ(run(binary, late(seed)), order) << seed;
    std::vector<int> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, ascending) << seed;
    orders.insert(order);
    last.insert(order.back());
  }
  EXPECT_EQ(orders.size(), 8u);
  EXPECT_GT(last.size(), 3u) << "another copy is the last for another seed";
}

TEST(LateCopies, EachBlockHasAnOrderOfItsOwn) {
  const std::vector<int> orders = run(compiled(bulk_kernel(kNotesTheOrder)), late(1), {.grid = {2}});
  EXPECT_FALSE(std::equal(orders.begin(), orders.begin() + kSlots, orders.begin() + kSlots));
}

TEST(LateCopies, AReadTooEarlyFindsOldBytes) {
  const Binary binary = compiled(bulk_kernel(std::string(kReadsAtOnce) + kWaitsBehind));
  EXPECT_EQ(run(binary, kAtOnce), expected());
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const std::vector<int> found = run(binary, late(seed));
    EXPECT_THAT(found, Contains(-1)) << seed;
    EXPECT_THAT(found, Contains(testing::Ge(0))) << "some land at once, for seed " << seed;
  }
}

TEST(LateCopies, AllLandForThreadsThatWait) {
  const Binary binary = compiled(bulk_kernel(kWaits));
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    for (const unsigned threads : {32u, 256u})
      EXPECT_EQ(run(binary, late(seed), {.grid = {3}, .block = {threads}}), expected(3)) << seed;
}

/// While a late one is on its way, threads that wait at the barrier of the block are not taken for a deadlock.
TEST(LateCopies, OneThreadMayWaitForAllOthers) {
  const Binary binary = compiled(bulk_kernel(R"(
  if (threadIdx.x == 0)
    for (int i = 0; i < 32; ++i)
      while (!landed(i)) __nanosleep(0);
  __syncthreads();
  if (threadIdx.x < 32) out[threadIdx.x] = slots[threadIdx.x][3];)"));
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    EXPECT_EQ(run(binary, late(seed), {.block = {128}}), expected()) << seed;
}

/// A thread has a group of copies for each half of its eight integers.
std::string grouped_kernel(const std::string& use) {
  return R"(
extern "C" __global__ void entry(const int* in, int* out) {
  __shared__ int staged[8 * 32];
  int* const own = staged + 8 * threadIdx.x;
  for (int i = 0; i < 8; ++i) {
    hone_host::start_copy(own + i, in + (8 * threadIdx.x + i) % 128);
    if (i % 4 == 3) hone_host::end_copy_group();
  }
  int early = 0, late = 0;
  )" + use + R"(
  for (int i = 0; i < 8; ++i) (i < 4 ? early : late) += own[i] == in[(8 * threadIdx.x + i) % 128];
  hone_host::wait_for_copy_groups(0);
  out[threadIdx.x] = 10 * early + late;
})";
}

TEST(LateCopies, GroupsAreWaitedForOneAfterTheOther) {
  const Binary waits_for_none = compiled(grouped_kernel("")),
               waits_for_one = compiled(grouped_kernel("hone_host::wait_for_copy_groups(1);")),
               waits_for_both = compiled(grouped_kernel("hone_host::wait_for_copy_groups(0);"));
  EXPECT_THAT(run(waits_for_none, kAtOnce), Each(44));
  EXPECT_THAT(run(waits_for_both, late(1)), Each(44));
  const std::vector<int> after_one = run(waits_for_one, late(1));
  EXPECT_THAT(after_one, Each(testing::AllOf(testing::Ge(40), testing::Le(44))));
  EXPECT_THAT(after_one, Contains(testing::Lt(44)));
  EXPECT_THAT(run(waits_for_none, late(1)), Contains(testing::Lt(40)));
}

std::string failure(const std::string& source, const std::vector<int>& values = std::vector<int>(4 * kSlots)) {
  const auto device = make_host_device(HostOptions{.sm_count = 1, .compiler = {}, .order = {}});
  const HostKernel kernel(device, source);
  const DeviceVector<int> in(device, values), out(device, std::vector<int>(kSlots));
  std::string message = kernel.failure({.block = {64}}, static_cast<const int*>(in.data()), out.data());
  const HostKernel right(device, bulk_kernel(kWaits));
  right.launch({.block = {64}}, static_cast<const int*>(in.data()), out.data());  // nothing is left of the wrong one
  return message;
}

TEST(LateCopies, ABlockMustNotEndBeforeItsCopies) {
  EXPECT_THAT(failure(bulk_kernel("")),
              AllOf(Names("copies", "in flight", "ended", "\"entry\"", "block (0,0,0)"),
                    HasLine("thread (0,0,0)", "started", "unit.cu:9")));
  EXPECT_THAT(failure(R"(
extern "C" __global__ void entry(const int* in, int*) {
  __shared__ int staged[64];
  hone_host::start_copy(staged + threadIdx.x, in + threadIdx.x);
  hone_host::end_copy_group();
})"), AllOf(Names("copies", "in flight"), HasLine("started", "unit.cu:4")));
}

TEST(LateCopies, ACopyMustStayWithinTheSharedMemory) {
  EXPECT_THAT(failure(R"(
extern "C" __global__ void entry(const int* in, int* out) {
  if (threadIdx.x == 5)
    hone_host::start_copy(out, in);
})"), AllOf(Names("copy", "4 bytes", "shared memory"), HasLine("thread (5,0,0)", "unit.cu:4")));
}

TEST(LateCopies, ASourceWithoutMemoryIsFoundWhereTheCopyStarts) {
  EXPECT_THAT(failure(R"(
extern "C" __global__ void entry(const int* in, int*) {
  __shared__ int staged[4];
  __shared__ unsigned long long landed;
  __syncthreads();
  if (threadIdx.x == 5) hone_host::start_bulk_copy(staged, static_cast<const int*>(nullptr) + in[0], 16, &landed);
})"), AllOf(Names("accessed", "0x0"), HasLine("thread (5,0,0)")));
}

}  // namespace
}  // namespace hone::test

#endif
