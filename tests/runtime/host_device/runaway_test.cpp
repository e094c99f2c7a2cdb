// Lanes that would not come back by themselves are ended: the launch fails, and the process lives on.
#include "tests/runtime/host_device/host_kernel.h"

#include <csignal>
#include <cstdlib>
#include <thread>
#include <utility>

#include "tests/support/names.h"

namespace hone::test {
namespace {

using testing::AllOf;

HostOptions with_deadline(int milliseconds) {
  HostOptions options;
  options.block_deadline = std::chrono::milliseconds(milliseconds);
  return options;
}

/// A function that calls itself as often as `depth` says, with frames of `frame_bytes`.
std::string recursion(int frame_bytes, const std::string& kernel) {
  const std::string bytes = std::to_string(frame_bytes);
  return "__device__ __noinline__ int deep(long depth, int* out) {\n  volatile char frame[" + bytes +
         "];\n  frame[depth % " + bytes + "] = 1;\n  return depth == 0 ? 0 : deep(depth - 1, out) + frame[out[0] % " +
         bytes + "];\n}\nextern \"C\" __global__ void entry(int* out) {\n" + kernel + "\n}\n";
}

TEST(HostRunaway, StackOverflowNamesTheThread) {
  // Some 80 KiB on a stack of 64, after a barrier that gave each thread a stack of its own.
  EXPECT_THAT(
      report(recursion(1024, "  __syncthreads();\n  if (threadIdx.x == 40) out[0] = deep(75, out);")),
      AllOf(Names("\"entry\"", "test", "block (0,0,0)", "overflowed", "65536 bytes"),
            HasLine("thread (40,0,0)", "last", "unit.cu:7")));
}

TEST(HostRunaway, EndlessRecursionEndsTheLaunch) {
  EXPECT_THAT(report(recursion(64, "  out[threadIdx.x] = deep(1l << 40, out);")),
              AllOf(Names("overflowed", "stack"), HasLine("thread (0,0,0)", "not met", "others")));
}

TEST(HostRunaway, LargeFramesDoNotStepOverTheGuard) {
  EXPECT_THAT(report(recursion(30000, "  __syncthreads();\n  if (threadIdx.x == 9) out[0] = deep(20, out);")),
              AllOf(Names("overflowed", "stack"), HasLine("thread (9,0,0)")));
}

TEST(HostRunaway, EverySmHasItsGuards) {
  const auto device = make_host_device(HostOptions{.sm_count = 3, .compiler = {}, .order = {}});
  const HostKernel kernel(
      device, recursion(512, "  __syncthreads();\n  if (threadIdx.x == 3) out[1 + blockIdx.x] = deep(300, out);"));
  const DeviceVector<int> out(device, std::vector<int>(64));
  for (int repeat = 0; repeat < 4; ++repeat)
    EXPECT_THAT(kernel.failure({.grid = {12}, .block = {64}}, out.data()), HasLine("thread (3,0,0)"));
}

TEST(HostRunaway, SpinningOnAVolatileFlagEndsAtTheDeadline) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  __syncthreads();
  if (threadIdx.x == 5)
    while (*static_cast<volatile int*>(out) == 0) {
    }
})", {.block = {64}}, with_deadline(200)),
              AllOf(Names("run", "200 ms", "without meeting", "spin", "atomic"),
                    HasLine("thread (5,0,0)", "last", "unit.cu:3")));
}

TEST(HostRunaway, ALoopWithoutEndIsFoundInEveryBlockAndThread) {
  const auto device = make_host_device(with_deadline(100));
  const HostKernel kernel(device, R"(
extern "C" __global__ void entry(int* out) {
  if (blockIdx.x == 2 && threadIdx.x == 33)
    for (volatile unsigned i = 0;; ++i) out[1] = i;
})");
  const DeviceVector<int> out(device, std::vector<int>(64));
  EXPECT_THAT(kernel.failure({.grid = {5}, .block = {64}}, out.data()),
              AllOf(Names("block (2,0,0)"), HasLine("thread (33,0,0)", "not met", "others")));
}

TEST(HostRunaway, MeetingForEverEndsAsWell) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  while (*static_cast<volatile int*>(out) == 0)
    __syncthreads();
})", {.block = {64}}, with_deadline(30)),
              Names("block", "run", "300 ms", "unit.cu:4"));
}

/// It runs for 100 ms in all and sleeps for three times as long, as it would wait for a processor that others have.
/// The kernel computes for milliseconds between system calls: some machines deliver the watchdog's signals at the next
/// one, or at a tick, and met in a system call the kernel goes on.
TEST(HostRunaway, WaitingForTheProcessorCountsWhereTheUserWaits) {
  constexpr char kOftenInterrupted[] = R"(
extern "C" int clock_gettime(int clock, long* seconds_and_ns);
extern "C" int usleep(unsigned);
__device__ long thread_ns() {
  long time[2];
  clock_gettime(3, time);
  return time[0] * 1000000000 + time[1];
}
extern "C" __global__ void entry(int* out) {
  for (int i = 0; i < 10; ++i) {
    for (const long start = thread_ns(); thread_ns() - start < 10000000;)
      for (volatile int k = 0; k < 6000000; ++k) {}
    usleep(30000);
  }
  out[0] = 1;
})";
  HostOptions options = with_deadline(200);
  options.sm_count = 1;
  for (const bool counts_waiting : {false, true}) {
    options.counts_waiting = counts_waiting;
    const auto device = make_host_device(options);
    const HostKernel kernel(device, kOftenInterrupted);
    const DeviceVector<int> out(device, {0});
    EXPECT_THAT(kernel.failure({.block = {1}}, out.data()), Names(counts_waiting ? "200 ms" : "succeeded"));
  }
}

TEST(HostRunaway, ALongLaunchOfShortTurnsIsNoRunaway) {
  const auto device = make_host_device(with_deadline(20));
  const HostKernel kernel(device, R"(
extern "C" __global__ void entry(int* out) {
  unsigned v = threadIdx.x;
  for (int i = 0; i < 3000; ++i) v = v * 1664525u + 1013904223u;
  out[blockIdx.x * 64 + threadIdx.x] = __syncthreads_count(v != 1);
})");
  const DeviceVector<int> out(device, std::vector<int>(400 * 64));
  kernel.launch({.grid = {400}, .block = {64}}, out.data());
  EXPECT_THAT(out.values(), testing::Each(64));
}

TEST(HostRunaway, LaunchesFromManyThreadsAreGuardedAndLeaveNoTimer) {
  const auto device = make_host_device(with_deadline(100));
  const HostKernel endless(device, "extern \"C\" __global__ void entry(volatile int* out) { while (*out == 0) {} }");
  const DeviceVector<int> out(device, {0});
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] { EXPECT_THAT(endless.failure({.block = {1}}, out.data()), Names("100 ms")); });
  for (std::thread& thread : threads) thread.join();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < end) {
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which report it themselves
TEST(HostRunaway, AWildPointerEndsTheLaunch) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  __syncthreads();
  if (threadIdx.x == 3) *reinterpret_cast<volatile int*>(16) = 1;
})"), AllOf(Names("accessed", "0x10"), HasLine("thread (3,0,0)", "last", "unit.cu:3")));
}

TEST(HostRunaway, AnIndexBeyondAnArrayEndsTheLaunch) {
  for (const auto& [index, place] : {std::pair("1024 + threadIdx.x", "behind its end"),
                                     std::pair("-1 - (int)threadIdx.x", "before its beginning")})
    EXPECT_THAT(report(std::string("extern \"C\" __global__ void entry(volatile int* out) {\n  out[") + index +
                       "] = 1;\n}"),
                HasLine("argument 1", "4096 bytes", place));
}

TEST(HostRunaway, DivisionByZeroEndsTheLaunch) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(volatile int* out) {
  if (threadIdx.x == 5) out[1] = 7 / out[0];
})"), AllOf(Names("divided", "integer"), HasLine("thread (5,0,0)", "not met", "others")));
}

/// Compilers may put a trap in the place of what they know to be undefined.
TEST(HostRunaway, ATrapOfTheCompilerEndsTheLaunch) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x == 5) __builtin_trap();
})"), AllOf(Names("\"entry\"", "undefined", "constant 0"), HasLine("thread (5,0,0)", "not met", "others")));
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  int parts = 0;
  if (threadIdx.x == 5) out[1] = out[0] / parts;
})"), AllOf(Names("\"entry\""), HasLine("thread (5,0,0)", "not met", "others")));
}

using HostRunawayDeathTest = testing::Test;

/// A fault that is none of a kernel's.
[[gnu::noipa]] void store_to(std::uintptr_t address) { *reinterpret_cast<volatile int*>(address) = 1; }

TEST(HostRunawayDeathTest, AFaultOfTheProgramGoesToItsOwnHandler) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::signal(SIGSEGV, [](int) { std::_Exit(7); });
        report("extern \"C\" __global__ void entry(int* out) { __trap(); }");
        store_to(16);
      },
      testing::ExitedWithCode(7), "");
}

TEST(HostRunawayDeathTest, AFaultOfTheProgramStillEndsIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        report("extern \"C\" __global__ void entry(int* out) { __trap(); }");
        store_to(16);
      },
      testing::KilledBySignal(SIGSEGV), "");
}
#endif

}  // namespace
}  // namespace hone::test
