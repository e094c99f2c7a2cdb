// A call whose plan is in memory costs no allocation and no system call besides its launch.
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string_view>
#include <vector>

#include <hone/tunable_kernel.h>

#include "tests/runtime/support/session_fixture.h"

namespace {

std::atomic<std::uint64_t> allocations = 0;

}  // namespace

// Not inlined: the compiler would take the pair for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace hone {
namespace {

/// Runs `work` in a child process that the kernel kills at its first system call but read, write and exit.
bool makes_no_system_call(const std::function<void()>& work) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) ::_exit(77);
    work();
    ::syscall(SYS_exit, 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return true;  // the kernel has no seccomp: nothing is shown
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class HitPathTest : public FakeSessionTest {
 protected:
  void hit(Session& session, Stream stream = nullptr) {
    session.launch(family_.problem(kSize), std::array<void*, 2>{in_.data(), out_.data()}, stream);
  }
};

TEST_F(HitPathTest, AHitMakesNoSystemCall) {
  Session session(device_, options());
  hit(session);
  hit(session);
  EXPECT_TRUE(makes_no_system_call([&] {
    for (int call = 0; call < 1000; ++call) hit(session);
  }));
  EXPECT_FALSE(makes_no_system_call([] { ::syscall(SYS_getppid); })) << "the guard sees nothing";
}

TEST_F(HitPathTest, AHitDoesNotAllocate) {
  for (const bool needs_workspace : {false, true}) {
    device_->script = [&](std::string_view policy) {
      return FakeKernel{.us = policy.ends_with("joined") == needs_workspace ? 2.0 : 30.0};
    };
    Session session(device_, {.on_miss = MissPolicy::tune, .tune_budget = std::chrono::minutes(1), .cache_path = {}});
    const Stream stream = device_->create_stream();
    hit(session, stream);
    hit(session, stream);
    const std::uint64_t before = allocations;
    for (int call = 0; call < 1000; ++call) hit(session, stream);
    EXPECT_EQ(allocations, before) << (needs_workspace ? "with" : "without") << " a workspace";
  }
  const std::uint64_t before = allocations;
  ::operator delete(::operator new(1));
  EXPECT_EQ(allocations, before + 1) << "the count sees nothing";
}

// On the host device, whose launch itself may allocate.
TEST_F(HitPathTest, AHitOfAKernelOfOnesOwnAllocatesNoMoreThanThatOfItsProblem) {
  const TunableKernel scale({.source = "__global__ void scale(float a, const float* x, float* y, int n) {\n"
                                       "  const int i = blockIdx.x * block_threads + threadIdx.x;\n"
                                       "  if (i < n) y[i] = a * x[i];\n}\n",
                             .parameters = {ordinal("block_threads", {64})},
                             .arguments = {scalar<float>("a"), in<float>("x"), out<float>("y"), extent<int>("n")}});
  Session session(Device::open("host"),
                  {.on_miss = MissPolicy::tune, .tune_budget = std::chrono::minutes(1), .cache_path = {}});
  const DeviceBuffer x(session.device(), std::vector<float>(kSize, 2)), y(session.device(), kSize * sizeof(float));
  Problem problem = scale.problem(kSize);
  problem.scalars[0] = 3.0;
  const auto allocations_of = [](const auto& call) {
    call();
    const std::uint64_t before = allocations;
    for (int i = 0; i < 100; ++i) call();
    return allocations - before;
  };
  const std::uint64_t as_problem =
      allocations_of([&] { session.launch(problem, std::array<void*, 2>{x.data(), y.data()}, nullptr); });
  EXPECT_EQ(allocations_of([&] { session.launch(scale, {3.0f, x, y}, kSize, nullptr); }), as_problem);
  EXPECT_EQ(y.to_host<float>().back(), 6);
}

}  // namespace
}  // namespace hone
