#include <gmock/gmock.h>

#include <hone/error.h>
#include <hone/kernel_family.h>

#include "tests/runtime/ranks/ranks.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

class Agreement : public RanksTest {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    if (IsSkipped()) return;
    if (ranks() < 2) GTEST_SKIP() << "needs two ranks";
    own_ = std::make_unique<Session>(device_, SessionOptions{.on_miss = MissPolicy::heuristic, .cache_path = {}});
    own_->prepare(problem_);
  }

  /// Dispatches to another candidate than the heuristic's.
  void choose_another() {
    const Candidate& usual = own_->prepare(problem_).winner->candidate;
    for (const Policy& policy : problem_.family->space().all()) {
      if (policy == usual.policy || !problem_.family->is_valid(problem_, policy, device_->facts()).empty()) continue;
      const Tuning tuning = own_->compare(problem_, {.only = {{policy, {.max_blocks = 1}}}});
      if (!tuning.winner) continue;
      own_->adopt(tuning, std::span(&problem_, 1));
      return;
    }
    FAIL() << "there is no other candidate";
  }

  std::vector<std::string> fingerprints() { return communicator_->exchange(*device_, own_->fingerprint()); }

  const Problem problem_ = reduce_problem(ReduceOp::sum, DType::f32, 1000);
  std::unique_ptr<Session> own_;
};

TEST_F(Agreement, MakesOneRanksWinnersThoseOfAll) {
  if (rank() == 1) choose_another();
  const std::vector<std::string> before = fingerprints();
  EXPECT_EQ(before[1].size(), 32u);
  EXPECT_NE(before[0], before[1]);
  EXPECT_EQ(own_->agree(*communicator_, 1), rank() == 1 ? 0 : 1);
  EXPECT_THAT(fingerprints(), testing::Each(before[1]));
  EXPECT_EQ(own_->agree(*communicator_, 0), 0);
}

TEST_F(Agreement, LeavesClassesAloneThatTheOtherDoesNotHave) {
  if (rank() == 0) own_->prepare(reduce_problem(ReduceOp::max, DType::f32, 1000));
  EXPECT_EQ(own_->agree(*communicator_, 1), 0);
  const std::vector<std::string> prints = fingerprints();
  EXPECT_NE(prints[0], prints[1]);
}

TEST_F(Agreement, NeedsARankThatExists) {
  EXPECT_THROW(own_->agree(*communicator_, ranks()), Error);
  EXPECT_THROW(own_->agree(*communicator_, -1), Error);
}

}  // namespace
}  // namespace hone
