#include "tuner/campaign/runners_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <optional>

#include "tests/runtime/support/session_fixture.h"

namespace hone::tuner {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RunnersUpTest : public FakeSessionTest {
 protected:
  RunnersUpTest() { family_ = TotalFamily({.alone_is_one_block = true}); }

  Candidate candidate(int threads, int work) const { return {{threads, work, 0}, {.max_blocks = 1}}; }
};

TEST_F(RunnersUpTest, AreTheNextThatAreAtMostATwentiethBehindAndWinNowhere) {
  device_->script = [](std::string_view source) {
    if (source == "threads=128 work=1 finish=alone") return FakeKernel{.us = 100};
    if (source == "threads=128 work=2 finish=alone") return FakeKernel{.us = 102};
    if (source == "threads=128 work=4 finish=alone") return FakeKernel{.us = 103};
    if (source == "threads=256 work=1 finish=alone") return FakeKernel{.us = 104};
    if (source == "threads=256 work=2 finish=alone") return FakeKernel{.us = 50, .is_wrong = true};
    return FakeKernel{.us = 110};
  };
  Session session(device_, options(MissPolicy::error));
  session.tune(family_.problem(kSize), {.budget = 1min, .exhaustive = true});
  const cache::Store store(folder_ / "cache.sqlite");
  const std::vector<Problem> problems{family_.problem(kSize), family_.problem(16 * kSize)};
  const std::vector<Candidate> winners{candidate(128, 1), candidate(128, 4)};
  RunnersUp runners_up(store, device_->facts(), problems, winners);
  EXPECT_THAT(runners_up.of(0), ElementsAre(candidate(128, 2), candidate(256, 1)));
  EXPECT_NEAR(runners_up.ratio(0, candidate(256, 4)).value(), 1.1, 1e-6) << "though it was far behind";
  EXPECT_EQ(runners_up.ratio(0, candidate(256, 2)), std::numeric_limits<double>::infinity()) << "it was wrong";
  EXPECT_EQ(runners_up.ratio(0, {{256, 4, 0}, {.max_blocks = 7}}), std::nullopt);
  EXPECT_THAT(runners_up.of(1), IsEmpty()) << "it was not tuned";
}

}  // namespace
}  // namespace hone::tuner
