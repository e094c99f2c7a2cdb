// FakeSessionTest: sessions on a FakeDevice that serve TotalFamily, with a cache file of their own.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <hone/error.h>
#include <hone/session.h>

#include "tests/runtime/support/fake_device.h"
#include "tests/runtime/support/temp_folder.h"
#include "tests/runtime/support/total_family.h"

namespace hone {

class FakeSessionTest : public testing::Test {
 protected:
  static constexpr std::int64_t kSize = 1000;

  SessionOptions options(MissPolicy on_miss = MissPolicy::tune) const {
    return {.on_miss = on_miss, .tune_budget = std::chrono::minutes(1), .cache_path = folder_ / "cache.sqlite"};
  }

  static ErrorCode code_of(const std::function<void()>& work, std::string* message = nullptr) {
    try {
      work();
    } catch (const Error& error) {
      if (message) *message = error.what();
      return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorCode::io_failed;
  }

  /// Launches on the ones of `in_`, and checks the result.
  Choice launch(Session& session, std::int64_t n = kSize, Stream stream = nullptr) {
    std::int64_t& out = *out_.as<std::int64_t>();
    out = -1;
    const std::array<void*, 2> buffers{in_.data(), &out};
    const Choice choice = session.launch(family_.problem(n), buffers, stream);
    EXPECT_EQ(out, n);
    return choice;
  }

  Problem graph_problem(std::int64_t n = kSize) const {
    Problem problem = family_.problem(n);
    problem.launch_context = LaunchContext::graph;
    return problem;
  }

  void SetUp() override { std::fill_n(in_.as<std::int32_t>(), kMost, 1); }

  static constexpr std::int64_t kMost = 100000;
  TempFolder folder_;
  TotalFamily family_;
  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
  DeviceBuffer in_{device_, kMost * sizeof(std::int32_t)};
  DeviceBuffer out_{device_, sizeof(std::int64_t)};
};

}  // namespace hone
