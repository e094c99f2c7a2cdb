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
    Session session(device_, {.tune_budget = std::chrono::minutes(1), .cache_path = {}});
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

}  // namespace
}  // namespace hone
