#include "cache/limits.h"

#include "cache/maintenance/verify.h"
#include "tests/cache/store_fixture.h"

namespace hone::cache {
namespace {

using testing::ElementsAre;

class CacheLimits : public CacheStore {
 protected:
  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  const LimitsRecord first_{.device = "cuda sm_90 sms=132;",
                            .machine = "a CPU",
                            .driver = "13.0",
                            .enqueue_us = 2.5,
                            .stream_launch_us = 0.9,
                            .graph_launch_us = 0,
                            .read_gbps = 3000,
                            .measured_at = now() - 60};
};

TEST_F(CacheLimits, ComeBackForTheirDeviceMachineAndDriverAlone) {
  EXPECT_EQ(store_.limits(first_), std::nullopt);
  EXPECT_EQ(store_.publish(first_), first_);
  EXPECT_EQ(store_.limits({.device = first_.device, .machine = first_.machine, .driver = first_.driver}), first_);
  for (std::string LimitsRecord::*field : {&LimitsRecord::device, &LimitsRecord::machine, &LimitsRecord::driver}) {
    LimitsRecord other = first_;
    other.*field += "2";
    EXPECT_EQ(store_.limits(other), std::nullopt);
  }
  EXPECT_TRUE(verify(file_).intact());
}

TEST_F(CacheLimits, TheBestOfAllMeasurementsCounts) {
  store_.publish(first_);
  LimitsRecord next = first_;
  next.enqueue_us = 2.7;
  next.stream_launch_us = 0.8;
  next.graph_launch_us = 0.5;
  next.read_gbps = 2900;
  next.measured_at += 10;
  const LimitsRecord both = store_.publish(next);
  EXPECT_EQ(both.enqueue_us, 2.5);
  EXPECT_EQ(both.stream_launch_us, 0.8);
  EXPECT_EQ(both.graph_launch_us, 0.5) << "it was not measured before";
  EXPECT_EQ(both.read_gbps, 3000);
  EXPECT_EQ(both.measured_at, next.measured_at);
  EXPECT_EQ(store_.limits(first_), both);
}

TEST_F(CacheLimits, OldOnesAndThoseOfAWrongClockAreForgotten) {
  for (const std::int64_t age : {kLimitsLifetimeS + 120, std::int64_t{-3600}}) {
    LimitsRecord wrong = first_;
    wrong.enqueue_us = 0.001;
    wrong.measured_at = now() - age;
    store_.publish(wrong);
    EXPECT_EQ(store_.limits(first_), std::nullopt) << age;
    EXPECT_EQ(store_.publish(first_), first_) << age;
  }
}

TEST_F(CacheLimits, DamagedOnesAreNone) {
  store_.publish(first_);
  sql(file_, "UPDATE limits SET enqueue_us = 0.1");
  EXPECT_EQ(store_.limits(first_), std::nullopt);
  EXPECT_EQ(verify(file_).damaged, 1);
  EXPECT_EQ(store_.publish(first_), first_);
  EXPECT_TRUE(verify(file_).intact());
}

}  // namespace
}  // namespace hone::cache
