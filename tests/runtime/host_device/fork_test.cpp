// A process that forks while it has a host device open.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <hone/session.h>
#include <hone/tuned_reduce.h>

#include "tests/runtime/host_device/host_kernel.h"
#include "tests/support/names.h"

namespace hone::test {
namespace {

constexpr std::int64_t kElements = 100'000;

/// Returns what `work` says in a forked child; "" when it ends otherwise than by returning.
std::string say_in_child(const std::function<std::string()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // a child that hangs ends all the same
    const std::string said = work();
    const bool is_written = ::write(ends[1], said.data(), said.size()) == static_cast<::ssize_t>(said.size());
    ::_exit(is_written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said;
  char part[512];
  for (::ssize_t count = 0; (count = ::read(ends[0], part, sizeof(part))) > 0;)
    said.append(part, static_cast<std::size_t>(count));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? said : "";
}

std::string failure_of(const std::function<void()>& work) {
  try {
    work();
    return "no failure";
  } catch (const Error& error) {
    return error.code() == ErrorCode::device_lost ? error.what() : std::string("another error: ") + error.what();
  }
}

SessionOptions without_cache() { return {.on_miss = MissPolicy::heuristic, .cache_path = {}}; }

std::int64_t sum_of_ones(Session& session) {
  const std::shared_ptr<Device>& device = session.device();
  const DeviceBuffer in(device, kElements * sizeof(std::int32_t));
  std::fill_n(in.as<std::int32_t>(), kElements, 1);
  return tuned_reduce_and_wait(session, sum, in.as<std::int32_t>(), kElements, nullptr);
}

class HostDeviceFork : public testing::Test {
 protected:
  HostDeviceFork() { EXPECT_EQ(sum_of_ones(*session_), kElements); }

  std::shared_ptr<Device> device_ = make_host_device(HostOptions{.sm_count = 3, .compiler = {}, .order = {}});
  std::unique_ptr<Session> session_ = std::make_unique<Session>(device_, without_cache());
  DeviceBuffer in_{device_, kElements * sizeof(std::int32_t)};
  DeviceBuffer out_{device_, sizeof(std::int64_t)};
};

TEST_F(HostDeviceFork, AChildIsToldThatItsParentsDeviceIsNotItsOwn) {
  const std::string said = say_in_child([&] {
    return failure_of([&] {
      tuned_reduce(*session_, sum, in_.as<std::int32_t>(), kElements, out_.as<std::int64_t>(), nullptr);
    });
  });
  EXPECT_THAT(said, Names("forked"));
  EXPECT_THAT(said, Names(std::to_string(::getpid())));
}

TEST_F(HostDeviceFork, EveryWayIntoADeviceThrowsThere) {
  const std::vector<std::function<void()>> ways{
      [&] { device_->allocate(100); },
      [&] { device_->create_stream(); },
      [&] { device_->synchronize(nullptr); },
      [&] { device_->fill_bytes(in_.data(), 0, 8, nullptr); },
      [&] { device_->copy_to_host(out_.data(), in_.data(), 8, nullptr); },
      [&] { device_->memory_kind(in_.data()); },
      [&] { session_->prepare(reduce_problem(ReduceOp::max, DType::f32, 5000)); },
      [&] { session_->tune(reduce_problem(ReduceOp::max, DType::f32, 5000), {}); },
  };
  for (std::size_t i = 0; i < ways.size(); ++i)
    EXPECT_THAT(say_in_child([&] { return failure_of(ways[i]); }), Names("forked")) << "way " << i;
}

TEST_F(HostDeviceFork, AChildMayOpenItsOwnAndDestroyTheInherited) {
  const std::string said = say_in_child([&] {
    in_ = {};
    out_ = {};
    session_.reset();
    device_.reset();
    Session own(make_host_device(), without_cache());
    return std::to_string(sum_of_ones(own));
  });
  EXPECT_EQ(said, std::to_string(kElements));
  EXPECT_EQ(sum_of_ones(*session_), kElements);  // the parent goes on
}

}  // namespace
}  // namespace hone::test
