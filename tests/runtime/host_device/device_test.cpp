// Facts, memory and launches of the host device.
#include "tests/runtime/host_device/host_kernel.h"

#include <cstdint>

#include "tests/support/names.h"

namespace hone::test {
namespace {

TEST(HostDevice, FactsDescribeThisMachine) {
  const auto device = make_host_device();
  const DeviceFacts& facts = device->facts();
  EXPECT_EQ(device->name(), "host");
  EXPECT_EQ(facts.kind, "host");
  EXPECT_FALSE(facts.name.empty());
  EXPECT_FALSE(facts.architecture.empty());
  EXPECT_TRUE(facts.driver.starts_with("glibc ")) << facts.driver;
  EXPECT_GE(facts.sm_count, 1);
  EXPECT_EQ(facts.max_blocks_per_sm, 1);
  EXPECT_EQ(facts.registers_per_sm, 0);
  EXPECT_GT(facts.memory_bytes, 0);
  EXPECT_EQ(make_host_device(HostOptions{.sm_count = 3, .compiler = {}, .order = {}})->facts().sm_count, 3);
}

TEST(HostDevice, FreeMemoryIsWhatOtherProgramsLeave) {
  const auto device = make_host_device();
  EXPECT_GT(device->free_memory_bytes(), 0);
  EXPECT_LT(device->free_memory_bytes(), device->facts().memory_bytes) << "this program itself takes some";
}

TEST(HostDevice, MemoryIsAlignedAndKnown) {
  const auto device = make_host_device();
  auto* const memory = static_cast<char*>(device->allocate(1000));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0u);
  int local = 0;
  EXPECT_EQ(device->memory_kind(memory), MemoryKind::device);
  EXPECT_EQ(device->memory_kind(memory + 999), MemoryKind::device);
  EXPECT_EQ(device->memory_kind(&local), MemoryKind::host);
  EXPECT_EQ(device->memory_kind(nullptr), MemoryKind::host);
  device->fill_bytes(memory, 7, 1000, nullptr);
  std::vector<char> back(1000);
  device->copy_to_host(back.data(), memory, 1000, nullptr);
  EXPECT_THAT(back, testing::Each(7));
  device->deallocate(memory);
  EXPECT_EQ(device->memory_kind(memory), MemoryKind::host);
  device->deallocate(nullptr);
}

TEST(HostDevice, EmptyAllocationsAreDistinct) {
  const auto device = make_host_device();
  void* const a = device->allocate(0);
  void* const b = device->allocate(0);
  EXPECT_NE(a, nullptr);
  EXPECT_NE(a, b);
  device->deallocate(a);
  device->deallocate(b);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose allocators end the process
TEST(HostDevice, AbsurdAllocationIsOutOfMemory) {
  const auto device = make_host_device();
  for (const std::size_t bytes : {std::size_t{1} << 60, SIZE_MAX}) {
    try {
      device->deallocate(device->allocate(bytes));
      ADD_FAILURE() << "allocated " << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    }
  }
}
#endif

TEST(HostDevice, ImpossibleLaunchesAreRefused) {
  const auto device = make_host_device();
  const HostKernel kernel(device, "extern \"C\" __global__ void entry(int) {}");
  EXPECT_THAT(kernel.failure({.block = {0}}, 1), Names("threads"));
  EXPECT_THAT(kernel.failure({.block = {1025}}, 1), Names("threads"));
  EXPECT_THAT(kernel.failure({.block = {32, 32, 2}}, 1), Names("threads"));
  EXPECT_THAT(kernel.failure({.grid = {0}}, 1), Names("blocks"));
  EXPECT_THAT(kernel.failure({.grid = {2}, .cluster_blocks = 2}, 1), Names("no thread-block", "clusters"));
  EXPECT_THAT(kernel.failure({.grid = {1, 65536}}, 1), Names("blocks"));
  EXPECT_THAT(kernel.failure_of_code(ErrorCode::invalid_argument, {}),
              Names("0 arguments", "kernel", "1 parameters"));
  kernel.launch({}, 1);
  kernel.launch({.dependent_launch = true}, 1);  // nothing runs ahead of it here
}

TEST(HostDevice, BlocksOfACooperativeGridRunAtOnce) {
  HostOptions options = usual_host_options();
  options.sm_count = 3;
  const auto device = make_host_device(options);
  const HostKernel kernel(device, R"(extern "C" __global__ void entry(unsigned* arrived) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < gridDim.x) __nanosleep(20);
  }
}
)");
  const DeviceBuffer arrived(device, sizeof(unsigned));
  device->fill_bytes(arrived.data(), 0, sizeof(unsigned), nullptr);
  kernel.launch({.grid = {3}, .cooperative = true}, arrived.data());
  EXPECT_EQ(*arrived.as<unsigned>(), 3u);
  EXPECT_THAT(kernel.failure({.grid = {4}, .cooperative = true}, arrived.data()), Names("cooperative", "4", "3"));
}

TEST(HostDevice, TimesWork) {
  const auto device = make_host_device();
  int runs = 0;
  EXPECT_GE(device->time_us(nullptr, [&] { ++runs; }), 0.0);
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(device->stream_state(nullptr).capturing);
}

TEST(HostDevice, CapturedWorkRunsWhenItIsReplayedAndNotBefore) {
  const auto device = make_host_device();
  int runs = 0;
  const auto work = device->capture(nullptr, [&] { ++runs; });
  EXPECT_EQ(runs, 0);
  device->replay(*work, nullptr);
  device->replay(*work, nullptr);
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace hone::test
