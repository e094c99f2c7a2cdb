#include "tuner/context/staleness.h"

#include <gmock/gmock.h>

#include "tests/cache/support.h"
#include "tuner/winners/device_filter.h"

namespace hone::tuner {
namespace {

TEST(Staleness, EveryPartOfTheToolchainCounts) {
  const cache::KeyRecord key = cache::sample_publication().key;
  const CurrentToolchain same{.kind = "cuda",
                              .architecture = "sm_90",
                              .identity = key.device.identity,
                              .compiler = "nvrtc 13.0",
                              .driver = "580.1",
                              .family_digests = {{"reduce", "0123456789abcdef"}}};
  EXPECT_EQ(currency(key, {same}), Currency::current);
  EXPECT_EQ(currency(key, {}), Currency::unknown);
  const auto changed = [&](auto member, auto value) {
    CurrentToolchain other = same;
    other.*member = value;
    return currency(key, {other});
  };
  EXPECT_EQ(changed(&CurrentToolchain::compiler, "nvrtc 13.1"), Currency::current) << "its code serves";
  EXPECT_EQ(changed(&CurrentToolchain::compiler, "nvrtc 13.1:1+address"), Currency::stale);
  EXPECT_EQ(changed(&CurrentToolchain::compiler, ""), Currency::current) << "without a compiler none disagrees";
  EXPECT_EQ(changed(&CurrentToolchain::identity, "name=other;" + key.device.identity), Currency::current);
  EXPECT_EQ(changed(&CurrentToolchain::driver, "590.2"), Currency::stale);
  EXPECT_EQ(changed(&CurrentToolchain::kind, "host"), Currency::unknown);
  EXPECT_EQ(changed(&CurrentToolchain::architecture, "sm_80"), Currency::unknown);
  EXPECT_EQ(changed(&CurrentToolchain::identity, "x"), Currency::unknown);
  CurrentToolchain newer = same;
  newer.family_digests = {{"reduce", "f"}};
  EXPECT_EQ(currency(key, {newer}), Currency::stale);
}

TEST(DeviceFilter, MatchesKindArchitectureOrPartOfTheName) {
  const cache::DeviceRecord device = cache::sample_publication().key.device;
  for (const char* text : {"", "cuda", "CUDA", "sm_90", "SM_90", "invented", "GPU", "ented g"}) {
    EXPECT_TRUE(matches_device(device, text)) << text;
  }
  for (const char* text : {"host", "sm_9", "cud", "invented  gpu"}) EXPECT_FALSE(matches_device(device, text)) << text;
}

}  // namespace
}  // namespace hone::tuner
