#include "runtime/device/nvml/nvml_monitor.h"

#include <gtest/gtest.h>

#include <array>

namespace hone {
namespace {

TEST(NvmlMonitor, HeatAndPowerThrottleIdleAndSettingsDoNot) {
  EXPECT_FALSE(is_throttled(0));
  EXPECT_FALSE(is_throttled(0x1));   // idle
  EXPECT_FALSE(is_throttled(0x2));   // application clocks
  EXPECT_FALSE(is_throttled(0x10));  // sync boost
  for (const std::uint64_t reason : {0x4, 0x8, 0x20, 0x40, 0x80}) EXPECT_TRUE(is_throttled(reason | 0x1)) << reason;
}

TEST(NvmlMonitor, OthersThatWorkShareTheDevice) {
  const std::array<ProcessLoad, 2> busy{{{100, 60}, {200, 5}}};
  EXPECT_TRUE(is_shared(busy, 100));
  const std::array<ProcessLoad, 2> idle{{{100, 60}, {200, 0}}};
  EXPECT_FALSE(is_shared(idle, 100));
  EXPECT_FALSE(is_shared({}, 100));
}

TEST(NvmlMonitor, PidsOfAnotherNamespaceSayNothing) {
  const std::array<ProcessLoad, 1> renamed{{{31337, 99}}};
  EXPECT_FALSE(is_shared(renamed, 100));
}

TEST(NvmlMonitor, SaysWhatItSaw) {
  const std::array<ProcessLoad, 3> busy{{{100, 60}, {200, 5}, {300, 0}}};
  EXPECT_EQ(describe({.is_throttled = true, .is_shared = true}, 0x40, busy, 100),
            "the clock is held down (NVML's clock event reasons 0x40), process 200 uses 5 % of the SMs");
  EXPECT_EQ(describe({}, 0x1, busy, 100), "");
}

TEST(NvmlMonitor, AnUnknownDeviceIsFair) {
  const NvmlMonitor monitor("ffff:ff:1f.0");
  EXPECT_FALSE(monitor.condition().is_throttled);
  EXPECT_FALSE(monitor.condition().is_shared);
}

}  // namespace
}  // namespace hone
