#include "tuner/text/reasons.h"

#include <gmock/gmock.h>

namespace hone::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Reason spills(int bytes) { return {ReasonCode::spills, {double(bytes)}}; }

TEST(ReasonCounts, ReasonsThatDifferInNumbersAloneAreOne) {
  ReasonCounts counts;
  counts.add("rejected", spills(8));
  counts.add("failed", spills(8));
  counts.add("rejected", spills(16), 3);
  counts.add("rejected", Reason(ReasonCode::pruned, "too small"));
  counts.add("rejected", "needs 8 bytes");
  counts.add("rejected", "needs 9 bytes");
  const std::vector<ReasonCount> all = counts.most_frequent_first();
  EXPECT_THAT(all,
              ElementsAre(ReasonCount{"rejected", spills(8), 4, true}, ReasonCount{"failed", spills(8), 1},
                          ReasonCount{"rejected", Reason(ReasonCode::pruned, "too small"), 1},
                          ReasonCount{"rejected", "needs 8 bytes", 1}, ReasonCount{"rejected", "needs 9 bytes", 1}));
  EXPECT_EQ(all[0].text(), "spills: … bytes of local memory per thread");
  EXPECT_EQ(all[1].text(), spills(8).text());
}

TEST(ReasonCounts, ReasonThatIsAlwaysTheSameKeepsItsNumbers) {
  ReasonCounts counts;
  counts.add("rejected", spills(8));
  counts.add("rejected", spills(8));
  EXPECT_THAT(counts.most_frequent_first(), ElementsAre(ReasonCount{"rejected", spills(8), 2}));
}

TEST(ReasonCounts, CountsOfSeveralAreAdded) {
  ReasonCounts first, all;
  first.add("failed", Reason(ReasonCode::does_not_compile, "error 1\nin line 2"));
  first.add("failed", Reason(ReasonCode::does_not_compile, "error 2"));
  for (const ReasonCount& each : first.most_frequent_first()) all.add(each);
  EXPECT_EQ(all.most_frequent_first().at(0).text(), "does not compile: …");
  all.add("failed", Reason(ReasonCode::does_not_compile, "error 1\nin line 2"), 5);
  EXPECT_EQ(all.most_frequent_first().at(0).count, 7);
  EXPECT_EQ(all.most_frequent_first().size(), 1u);
  EXPECT_THAT(ReasonCounts().most_frequent_first(), IsEmpty());
}

}  // namespace
}  // namespace hone::tuner
