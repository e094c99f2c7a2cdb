// A tuning measures device and machine, and later processes use it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/runtime/support/session_fixture.h"

namespace hone {
namespace {

using namespace std::chrono_literals;

class SessionLimits : public FakeSessionTest {
 protected:
  /// Another process: its device has measured nothing yet.
  void start(const DeviceLimits& measured) {
    const DeviceFacts facts = device_->facts();
    device_ = std::make_shared<FakeDevice>(facts);
    device_->measure_limits = [this, measured] {
      ++measurements_;
      return measured;
    };
  }
  void tune(std::int64_t n = kSize) {
    Session(device_, options()).tune(family_.problem(n), {.budget = 1min});
  }
  DeviceLimits stored() { return Session(device_, options()).stored_limits(); }

  static constexpr DeviceLimits kQuiet{
      .enqueue_us = 0.5, .stream_launch_us = 0.4, .graph_launch_us = 0.3, .read_gbps = 3000};
  static constexpr DeviceLimits kBusy{
      .enqueue_us = 0.9, .stream_launch_us = 0.6, .graph_launch_us = 0.2, .read_gbps = 2000};
  int measurements_ = 0;
};

TEST_F(SessionLimits, ATuningMeasuresThemAndLaterMissesTakeWhatIsStored) {
  start(kQuiet);
  EXPECT_EQ(stored(), DeviceLimits{});
  tune();
  EXPECT_EQ(measurements_, 1);
  EXPECT_EQ(stored(), kQuiet);
  start(kBusy);
  Session(device_, options(MissPolicy::tune)).prepare(family_.problem(8 * kSize));
  EXPECT_EQ(device_->limits(), kQuiet);
  EXPECT_EQ(measurements_, 1);
}

TEST_F(SessionLimits, WhatABusyMachineMeasuredIsReplacedByALaterTuning) {
  start(kBusy);
  tune();
  start(kQuiet);
  tune(8 * kSize);
  EXPECT_EQ(measurements_, 2);
  const DeviceLimits best{.enqueue_us = 0.5, .stream_launch_us = 0.4, .graph_launch_us = 0.2, .read_gbps = 3000};
  EXPECT_EQ(stored(), best);
  EXPECT_EQ(device_->limits(), best);
  start(kBusy);
  tune(64 * kSize);
  EXPECT_EQ(stored(), best);
}

TEST_F(SessionLimits, BelongToADriver) {
  start(kQuiet);
  tune();
  DeviceFacts facts = device_->facts();
  facts.driver += ".1";
  device_ = std::make_shared<FakeDevice>(facts);
  EXPECT_EQ(stored(), DeviceLimits{});
}

TEST_F(SessionLimits, OfADeviceThatMeasuresNoneAreNotStored) {
  tune();
  EXPECT_EQ(stored(), DeviceLimits{});
}

}  // namespace
}  // namespace hone
