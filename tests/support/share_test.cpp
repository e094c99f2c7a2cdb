#include "tests/support/long_test.h"

#include <gmock/gmock.h>

#include <vector>

namespace hone::test {
namespace {

class Share : public testing::Test {
 protected:
  ~Share() override {
    ::unsetenv("HONE_TEST_SHARE");
    ::unsetenv("HONE_TEST_SEED");
  }

  static std::vector<std::size_t> turns(const char* share, const char* seed, std::size_t step = 1) {
    ::setenv("HONE_TEST_SHARE", share, 1);
    ::setenv("HONE_TEST_SEED", seed, 1);
    std::vector<std::size_t> taken;
    for (std::size_t turn = 0; turn < 12; ++turn)
      if (in_share(turn, step)) taken.push_back(turn);
    return taken;
  }
};

TEST_F(Share, SeedsInARowMeetEveryTurnOnce) {
  std::vector<std::size_t> met;
  for (const char* seed : {"803", "804", "805"})
    for (const std::size_t turn : turns("0.3333", seed)) met.push_back(turn);
  EXPECT_THAT(met, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST_F(Share, IsOfEveryStepThTurn) {
  EXPECT_THAT(turns("1", "7", 3), testing::ElementsAre(0, 3, 6, 9));
  EXPECT_THAT(turns("0.5", "0", 3), testing::ElementsAre(0, 6));
  EXPECT_THAT(turns("0.5", "1", 3), testing::ElementsAre(3, 9));
}

TEST_F(Share, HasEveryNameWithOneOfTheSeeds) {
  for (const char* name : {"Columns", "Rows", ""}) {
    int met = 0;
    for (const char* seed : {"0", "1", "2", "3"}) {
      turns("0.25", seed);
      met += in_share(std::string_view(name)) ? 1 : 0;
    }
    EXPECT_EQ(met, 1) << name;
  }
}

TEST_F(Share, HasTheTestThatRunsWithOneOfTheSeeds) {
  int met = 0;
  for (const char* seed : {"3", "4", "5", "6"}) {
    turns("0.25", seed);
    met += is_due() ? 1 : 0;
  }
  EXPECT_EQ(met, 1);
}

TEST_F(Share, OfMoreThanEverythingOrOfNothingReadableIsEverything) {
  EXPECT_EQ(turns("100", "5").size(), 12u);
  EXPECT_EQ(turns("", "").size(), 12u);
}

}  // namespace
}  // namespace hone::test
