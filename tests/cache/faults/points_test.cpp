#include <gmock/gmock.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "tests/cache/faults/campaign.h"
#include "tests/support/share.h"

namespace hone::cache {
namespace {

class CampaignPoints : public testing::Test {
 protected:
  ~CampaignPoints() override { ::setenv("HONE_TEST_SEED", std::to_string(seed_).c_str(), 1); }

  static Points points(int seed, int count, int stride, int turn = 0) {
    ::setenv("HONE_TEST_SEED", std::to_string(seed).c_str(), 1);
    return Points(count, stride, turn);
  }

 private:
  const std::size_t seed_ = test::seed();
};

TEST_F(CampaignPoints, SeedsInARowMeetEachOnce) {
  for (const int count : {0, 1, 4, 23, 100}) {
    std::vector<int> met(static_cast<std::size_t>(count));
    for (int seed = 1230; seed < 1237; ++seed) {
      const Points some = points(seed, count, 7, 2);
      for (int i = 0; i < some.count(); ++i) ++met.at(static_cast<std::size_t>(some[i]));
    }
    EXPECT_THAT(met, testing::Each(1));
  }
}

TEST_F(CampaignPoints, AreAllAtAStrideOfOne) {
  const Points all = points(5, 12, 1, 3);
  EXPECT_EQ(all.count(), 12);
  EXPECT_EQ(all[0], 0);
}

TEST_F(CampaignPoints, BeginElsewhereWithAnotherTurnAndRandomCasesWithAnotherSeed) {
  EXPECT_NE(points(5, 100, 40, 0)[0], points(5, 100, 40, 1)[0]);
  const unsigned last = random_seed(99, 100);
  points(6, 1, 1);
  EXPECT_EQ(random_seed(0, 100), last + 1);
}

}  // namespace
}  // namespace hone::cache
