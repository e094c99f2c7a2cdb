#include "tuner/text/reasons.h"

#include <gmock/gmock.h>

namespace hone::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WithoutNumbers, EveryNumberIsOneMark) {
  EXPECT_EQ(without_numbers("predicted 12.50 µs, at least 3"), "predicted … µs, at least …");
  EXPECT_EQ(without_numbers("f32."), "f….");
  EXPECT_EQ(without_numbers(""), "");
}

TEST(ReasonCounts, ReasonsThatDifferInNumbersAloneAreOne) {
  ReasonCounts counts;
  counts.add("rejected", "needs 8 bytes");
  counts.add("failed", "needs 8 bytes");
  counts.add("rejected", "needs 16 bytes", 3);
  counts.add("rejected", "spills");
  EXPECT_THAT(counts.most_frequent_first(),
              ElementsAre(ReasonCount{"rejected", "needs … bytes", 4}, ReasonCount{"failed", "needs 8 bytes", 1},
                          ReasonCount{"rejected", "spills", 1}));
}

TEST(ReasonCounts, ReasonThatIsAlwaysTheSameKeepsItsNumbers) {
  ReasonCounts counts;
  counts.add("rejected", "needs 8 bytes");
  counts.add("rejected", "needs 8 bytes");
  EXPECT_THAT(counts.most_frequent_first(), ElementsAre(ReasonCount{"rejected", "needs 8 bytes", 2}));
}

TEST(ReasonCounts, CountsOfSeveralAreAdded) {
  ReasonCounts first, all;
  first.add("failed", "error 1\nin line 2");
  first.add("failed", "error 2");
  for (const ReasonCount& each : first.most_frequent_first()) all.add(each.verdict, each.reason, each.count);
  all.add("failed", "error 3\nin line 4", 5);
  EXPECT_THAT(all.most_frequent_first(), ElementsAre(ReasonCount{"failed", "error …", 7}));
  EXPECT_THAT(ReasonCounts().most_frequent_first(), IsEmpty());
}

}  // namespace
}  // namespace hone::tuner
