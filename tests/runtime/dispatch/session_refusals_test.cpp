// Sessions refuse problems, buffers, and calls that would wait for themselves, and name what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <hone/error.h>
#include <hone/sdk/forwarding_device.h>
#include <hone/session.h>

#include "tests/runtime/support/session_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

using SessionRefusals = FakeSessionTest;

TEST_F(SessionRefusals, RefusedProblemsThrowHitOrMiss) {
  Session session(device_, options());
  for (int round = 0; round < 2; ++round) {
    std::string message;
    const std::array<void*, 2> buffers{in_.data(), out_.data()};
    EXPECT_EQ(code_of([&] { session.launch(family_.problem(-5), buffers, nullptr); }, &message),
              ErrorCode::invalid_argument);
    EXPECT_THAT(message, Names("negative"));
    launch(session, 5);  // from now on the class that -5 falls into has a winner
  }
}

TEST_F(SessionRefusals, NullBuffersAreRefusedHitOrMiss) {
  Session session(device_, options());
  for (int round = 0; round < 2; ++round) {
    std::string message;
    const std::array<void*, 2> buffers{in_.data(), nullptr};
    EXPECT_EQ(code_of([&] { session.launch(family_.problem(kSize), buffers, nullptr); }, &message),
              ErrorCode::invalid_argument);
    EXPECT_THAT(message, Names("buffer", "1"));
    launch(session);
  }
}

TEST_F(SessionRefusals, ValidationSeesHostPointersWrongCountsAndMisalignment) {
  SessionOptions strict = options();
  strict.validate_pointers = true;
  Session session(device_, strict);
  launch(session);
  std::vector<std::int32_t> on_host(kSize);
  std::string message;
  const auto refuse = [&](const std::vector<void*>& buffers, const char* why) {
    EXPECT_EQ(code_of([&] { session.launch(family_.problem(kSize), buffers, nullptr); }, &message),
              ErrorCode::invalid_argument);
    EXPECT_THAT(message, Names(why));
  };
  refuse({on_host.data(), out_.data()}, "is host memory");
  refuse({in_.data()}, "takes 2 buffers, 1 were passed");
  refuse({in_.as<std::byte>() + 4, out_.data()}, "'in' at");
  refuse({in_.data(), in_.as<std::byte>() + 4}, "'out' at");
}

/// A device that one array is not on.
class BesideAnother : public ForwardingDevice {
 public:
  BesideAnother(std::shared_ptr<Device> inner, const void* far) : ForwardingDevice(std::move(inner)), far_(far) {}
  MemoryKind memory_kind(const void* pointer) const override {
    return pointer == far_ ? MemoryKind::peer : ForwardingDevice::memory_kind(pointer);
  }
  std::string memory_owner(const void* pointer) const override {
    return pointer == far_ ? "Another GPU (cuda:7)" : ForwardingDevice::memory_owner(pointer);
  }

 private:
  const void* far_;
};

TEST_F(SessionRefusals, ValidationNamesBothDevicesOfAnArrayThatLiesOnAnother) {
  SessionOptions strict = options();
  strict.validate_pointers = true;
  const std::string mine = device_->facts().name;
  for (const bool is_input : {true, false}) {
    const DeviceBuffer& far = is_input ? in_ : out_;
    Session session(std::make_shared<BesideAnother>(device_, far.data()), strict);
    std::string message;
    const std::array<void*, 2> buffers{in_.data(), out_.data()};
    EXPECT_EQ(code_of([&] { session.launch(family_.problem(kSize), buffers, nullptr); }, &message),
              ErrorCode::invalid_argument);
    EXPECT_THAT(message, Names(is_input ? "'in'" : "'out'", "lies on Another GPU (cuda:7)", "session", mine));
    const Plan plan = session.make_plan(family_.problem(kSize));
    EXPECT_EQ(code_of([&] { plan.launch(family_.problem(kSize), buffers, nullptr); }, &message),
              ErrorCode::invalid_argument);
    EXPECT_THAT(message, Names("Another GPU (cuda:7)"));
  }
}

TEST_F(SessionRefusals, WithoutValidationTheDeviceIsNotAsked) {
  Session session(device_, options());
  std::vector<std::int32_t> on_host(kSize, 1);
  const std::array<void*, 2> buffers{on_host.data(), out_.data()};
  EXPECT_NO_THROW(session.launch(family_.problem(kSize), buffers, nullptr));
}

TEST_F(SessionRefusals, WrongNumbersOfBuffersAreSeenHitOrMiss) {
  Session session(device_, options());
  std::array<void*, 3> buffers{in_.data(), out_.data(), out_.data()};
  for (int round = 0; round < 2; ++round) {
    for (const std::size_t count : {0u, 1u, 3u}) {
      const std::span<void* const> passed(buffers.data(), count);
      std::string message;
      EXPECT_EQ(code_of([&] { session.launch(family_.problem(kSize), passed, nullptr); }, &message),
                ErrorCode::invalid_argument);
      EXPECT_THAT(message, Names("takes 2 buffers", std::to_string(count)));
      const Plan plan = session.make_plan(family_.problem(kSize));
      EXPECT_EQ(code_of([&] { plan.launch(family_.problem(kSize), passed, nullptr); }, &message),
                ErrorCode::invalid_argument);
      EXPECT_THAT(message, Names("takes 2 buffers", std::to_string(count)));
    }
    launch(session);
  }
}

/// Fields that were cast from elsewhere, or never set.
TEST_F(SessionRefusals, ProblemsOfNoKindAreNamed) {
  const std::array<void*, 2> buffers{in_.data(), out_.data()};
  const auto refuse = [&](const auto& change, const auto&... words) {
    Problem problem = family_.problem(kSize);
    change(problem);
    Session session(device_, options());
    const auto expect_refused = [&](const auto& call) {
      std::string message;
      EXPECT_EQ(code_of(call, &message), ErrorCode::invalid_argument) << message;
      EXPECT_THAT(message, Names(words...));
    };
    expect_refused([&] { session.launch(problem, buffers, nullptr); });
    expect_refused([&] { session.prepare(problem); });
    expect_refused([&] { session.make_plan(problem); });
    expect_refused([&] { session.tune(problem, {.budget = std::chrono::minutes(1)}); });
  };
  refuse([](Problem& problem) { problem = {}; }, "family", "reduce_problem()");
  Session session(device_, options());
  const Plan plan = session.make_plan(family_.problem(kSize));
  EXPECT_EQ(code_of([&] { plan.launch({}, buffers, nullptr); }), ErrorCode::invalid_argument);
  refuse([](Problem& problem) { problem.operation = 200; }, "operation", "200");
  refuse([](Problem& problem) { problem.dtype = static_cast<DType>(77); }, "dtype", "77");
  refuse([](Problem& problem) { problem.result = static_cast<DType>(78); }, "result", "78");
  refuse([](Problem& problem) { problem.numerics = static_cast<Numerics>(9); }, "numerics", "9");
  refuse([](Problem& problem) { problem.nan = static_cast<NanPolicy>(9); }, "nan", "9");
  refuse([](Problem& problem) { problem.launch_context = static_cast<LaunchContext>(9); }, "launch_context", "9");
  refuse([](Problem& problem) { problem.alignment = 0; }, "alignment", "0", "power of two");
}

TEST_F(SessionRefusals, ACallbackOfATuningCannotWaitForIt) {
  Session session(device_, options());
  launch(session, 5);
  const Problem missing = family_.problem(kMost);
  const std::vector<std::function<void()>> waiting{
      [&] { session.prepare(missing); }, [&] { launch(session, kMost); },
      [&] { session.tune(missing, {.budget = std::chrono::minutes(1)}); }, [&] { session.pin(); },
      [&] { session.fingerprint(); }};
  for (const auto& call : waiting) {
    const auto tune = [&] {
      TuningOptions options{.budget = std::chrono::minutes(1)};
      options.on_progress = [&](const TuningProgress&) {
        launch(session, 5);  // which waits for nothing
        call();
      };
      session.tune(family_.problem(kSize), options);
    };
    std::string message;
    EXPECT_EQ(code_of(tune, &message), ErrorCode::invalid_argument);
    EXPECT_THAT(message, Names("callback", "wait for itself", "another"));
  }
  EXPECT_EQ(launch(session, kMost).source, ChoiceSource::tuned) << "the session works as before";
}

}  // namespace
}  // namespace hone
