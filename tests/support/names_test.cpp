#include "tests/support/names.h"

namespace hone::test {
namespace {

using testing::Not;

TEST(Names, AreAllInTheText) {
  EXPECT_THAT("a row of 7 elements", Names("row", "7"));
  EXPECT_THAT("a row of 7 elements", Not(Names("row", "8")));
  EXPECT_THAT("a row of 7 elements", Not(Names("")));
}

TEST(Names, ANumberIsNoPartOfALongerOne) {
  for (const char* text : {"17 bytes", "70 bytes", "7.5 bytes", "0.7 bytes"}) EXPECT_THAT(text, Not(Names("7")));
  for (const char* text : {"(7)", "u7", "7×5", "it is 7.", "17 and 7"}) EXPECT_THAT(text, Names("7"));
}

TEST(Names, OfALineAreInOneLine) {
  EXPECT_THAT("thread 1 at 4\nthread 2 at 6", HasLine("thread 2", "6"));
  EXPECT_THAT("thread 1 at 4\nthread 2 at 6", Not(HasLine("thread 1", "6")));
}

}  // namespace
}  // namespace hone::test
