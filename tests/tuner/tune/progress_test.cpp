#include "tuner/tune/progress.h"

#include <gtest/gtest.h>

#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

using namespace std::chrono_literals;
using TimePoint = CampaignProgress::TimePoint;

constexpr TimePoint kStart{};

TuningProgress measuring(int done, int total, double best_us) {
  TuningProgress progress;
  progress.phase = TuningPhase::measuring;
  progress.done = done;
  progress.total = total;
  progress.best_us = best_us;
  return progress;
}

TEST(CampaignProgress, ExpectsWholeBudgetsAtFirst) {
  CampaignProgress progress(4, 2s, std::nullopt, kStart);
  EXPECT_EQ(progress.remaining(kStart), 8000ms);
  progress.begin("sum f32 2^10", kStart);
  EXPECT_EQ(progress.remaining(kStart + 500ms), 7500ms);
  EXPECT_EQ(progress.remaining(kStart + 5s), 6000ms);  // late: the others still take their time
}

TEST(CampaignProgress, LearnsFromWhatIsFinished) {
  CampaignProgress progress(4, 2s, std::nullopt, kStart);
  progress.begin("a", kStart);
  progress.end(kStart + 1s);
  EXPECT_EQ(progress.remaining(kStart + 1s), 3000ms);
  progress.begin("b", kStart + 1s);
  progress.end(kStart + 1500ms);
  EXPECT_EQ(progress.remaining(kStart + 1500ms), 1500ms);
}

TEST(CampaignProgress, NeverExceedsTheTotalBudget) {
  CampaignProgress progress(100, 2s, 10s, kStart);
  EXPECT_EQ(progress.remaining(kStart), 10'000ms);
  EXPECT_EQ(progress.remaining(kStart + 11s), 0ms);
}

TEST(CampaignProgress, EndsAtZero) {
  CampaignProgress progress(1, 2s, std::nullopt, kStart);
  progress.begin("a", kStart);
  progress.end(kStart + 1s);
  EXPECT_EQ(progress.remaining(kStart + 1s), 0ms);
  EXPECT_EQ(CampaignProgress(0, 2s, std::nullopt, kStart).remaining(kStart), 0ms);
}

TEST(CampaignProgress, LineSaysWhatRunsHowFarAndHowLong) {
  CampaignProgress progress(15, 2s, std::nullopt, kStart);
  progress.begin("sum f32 2^10", kStart);
  progress.end(kStart + 2s);
  progress.begin("sum f32 2^11", kStart + 2s);
  EXPECT_EQ(progress.line(kStart + 2s, 100), "[ 2/15] sum f32 2^11  about 28 s left");
  progress.update(measuring(12, 48, 5.314));
  EXPECT_EQ(progress.line(kStart + 3s, 100), "[ 2/15] sum f32 2^11  measuring 12/48  best 5.31 µs  about 27 s left");
}

TEST(CampaignProgress, DevicesAtWorkShareWhatIsLeft) {
  CampaignProgress progress(4, 2s, std::nullopt, kStart);
  progress.begin("a", kStart, 0);
  progress.begin("b", kStart, 1);
  EXPECT_EQ(progress.remaining(kStart), 4000ms);
  progress.update(measuring(1, 2, 3), 0);
  EXPECT_EQ(progress.line(kStart, 100), "[1/4] a (+1 more)  measuring 1/2  best 3.00 µs  about 4.0 s left");
  progress.end(kStart + 1s, 0);
  progress.begin_other("comparing winners", 0);
  EXPECT_EQ(progress.remaining(kStart + 1s), 1000ms) << "no problem, so it takes no part in the times";
  EXPECT_EQ(progress.position(1), "[2/4]");
}

TEST(CampaignProgress, LineFitsNarrowTerminals) {
  CampaignProgress progress(15, 2s, std::nullopt, kStart);
  progress.begin("sum f32 2^11", kStart);
  progress.update(measuring(12, 48, 5.314));
  EXPECT_EQ(progress.line(kStart + 1s, 55), "[ 1/15] sum f32 2^11  best 5.31 µs  about 29 s left");
  EXPECT_EQ(progress.line(kStart + 1s, 40), "[ 1/15] sum f32 2^11  about 29 s left");
  EXPECT_EQ(progress.line(kStart + 1s, 30), "[ 1/15]  about 29 s left");
  EXPECT_EQ(progress.line(kStart + 1s, 10), "[ 1/15] s…");
  for (std::size_t columns = 0; columns < 80; ++columns) {
    EXPECT_LE(display_width(progress.line(kStart, columns)), columns);
  }
}

TEST(Throttle, LetsOneThroughPerInterval) {
  Throttle throttle(100ms);
  EXPECT_TRUE(throttle.pass(kStart));
  EXPECT_FALSE(throttle.pass(kStart + 99ms));
  EXPECT_TRUE(throttle.pass(kStart + 100ms));
  EXPECT_FALSE(throttle.pass(kStart + 150ms));
}

}  // namespace
}  // namespace hone::tuner
