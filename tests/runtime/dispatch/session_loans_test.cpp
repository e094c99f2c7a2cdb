// Tests of sessions with winners of other classes, on a device that only pretends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hone/sdk/loans.h>

#include "cache/store.h"
#include "runtime/search/candidates.h"
#include "runtime/search/model.h"
#include "tests/runtime/support/session_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;
using testing::ElementsAre;

/// The policy that wins is that of `fastest_`.
class SessionLoans : public FakeSessionTest {
 protected:
  void SetUp() override {
    FakeSessionTest::SetUp();
    device_->script = [this](std::string_view source) { return FakeKernel{.us = source == fastest_ ? 2.0 : 30.0}; };
  }

  Problem aligned_to(std::uint32_t alignment, std::int64_t n = kSize) const {
    Problem problem = family_.problem(n);
    problem.alignment = alignment;
    return problem;
  }

  Candidate tune(const Problem& problem, std::string_view fastest = kA) {
    fastest_ = fastest;
    return Session(device_, options()).prepare(problem).winner->candidate;
  }

  std::vector<cache::StoredMiss> misses() const { return cache::Store(folder_ / "cache.sqlite").misses(); }

  static constexpr std::string_view kA = "threads=256 work=4 finish=alone";
  static constexpr std::string_view kB = "threads=128 work=2 finish=joined";
  static constexpr std::int64_t kSaturating = std::int64_t{1} << 17;  // 512 KiB, eight times the cache
  std::string_view fastest_ = kA;
};

TEST_F(SessionLoans, AlignedWinnersServeOtherAlignments) {
  const Candidate tuned = tune(aligned_to(16));
  const int compiles = device_->compiles();
  {
    Session session(device_, options(MissPolicy::heuristic));
    const Choice choice = session.prepare(aligned_to(4));
    EXPECT_EQ(choice.source, ChoiceSource::nearest);
    EXPECT_EQ(choice.winner->loan, Loan::alignment);
    EXPECT_EQ(choice.winner->lender, to_string(aligned_to(16)));
    EXPECT_EQ(choice.winner->candidate, tuned);
    EXPECT_FALSE(choice.winner->tuned);
    EXPECT_EQ(session.prepare(aligned_to(4)).source, ChoiceSource::memory);
    EXPECT_EQ(session.counters().nearest, 1u);
  }
  EXPECT_EQ(device_->compiles(), compiles) << "its code is in the file";
  ASSERT_EQ(misses().size(), 1u);
  EXPECT_EQ(misses()[0].miss.key.problem.alignment, 4);
}

TEST_F(SessionLoans, IsStoredWithItsLenderAndReplacedByATuning) {
  tune(aligned_to(16));
  Session(device_, options(MissPolicy::heuristic)).prepare(aligned_to(4));
  Session later(device_, options(MissPolicy::heuristic));
  const Choice choice = later.prepare(aligned_to(4));
  EXPECT_EQ(choice.source, ChoiceSource::cache);
  EXPECT_EQ(choice.winner->loan, Loan::alignment);
  EXPECT_EQ(choice.winner->lender, to_string(aligned_to(16)));
  Session tuning(device_, options());
  const Choice own = tuning.prepare(aligned_to(4));
  EXPECT_EQ(own.source, ChoiceSource::tuned);
  EXPECT_EQ(own.winner->loan, Loan::none);
  EXPECT_TRUE(misses().empty());
}

TEST_F(SessionLoans, AGraphsWinnerServesTheStream) {
  const Candidate tuned = tune(graph_problem());
  Session session(device_, options(MissPolicy::heuristic));
  const Choice choice = session.prepare(family_.problem(kSize));
  EXPECT_EQ(choice.source, ChoiceSource::nearest);
  EXPECT_EQ(choice.winner->loan, Loan::context);
  EXPECT_EQ(choice.winner->candidate, tuned);
}

TEST_F(SessionLoans, AStreamsWinnerServesAGraphWhichIsMissed) {
  const Candidate tuned = tune(family_.problem(kSize));
  {
    Session session(device_, options(MissPolicy::heuristic));
    const Choice choice = session.prepare(graph_problem());
    EXPECT_EQ(choice.winner->loan, Loan::context);
    EXPECT_EQ(choice.winner->candidate, tuned);
  }
  ASSERT_EQ(misses().size(), 1u);
  EXPECT_EQ(misses()[0].miss.key.problem.launch_context, "graph");
}

TEST_F(SessionLoans, ASaturatedWinnerServesAnyLargerSize) {
  const Candidate tuned = tune(family_.problem(kSaturating));
  Session session(device_, options(MissPolicy::heuristic));
  const Choice choice = session.prepare(family_.problem(64 * kSaturating));
  EXPECT_EQ(choice.winner->loan, Loan::size);
  EXPECT_EQ(choice.winner->candidate, tuned);
}

TEST_F(SessionLoans, AnUnsaturatedOneServesNoneThatIsFarAway) {
  tune(family_.problem(kSaturating / 8));
  Session session(device_, options(MissPolicy::heuristic));
  EXPECT_EQ(session.prepare(family_.problem(64 * kSaturating)).source, ChoiceSource::heuristic);
}

TEST_F(SessionLoans, OperationsWithAsMuchArithmeticLend) {
  family_ = TotalFamily({.operations = {"total", "likewise"}, .arithmetic = "additions"});
  const Candidate tuned = tune(family_.problem(kSize), kB);
  Problem other = family_.problem(kSize);
  other.operation = 1;
  Session session(device_, options(MissPolicy::heuristic));
  const Choice choice = session.prepare(other);
  EXPECT_EQ(choice.winner->loan, Loan::operation);
  EXPECT_EQ(choice.winner->candidate, tuned);
  EXPECT_THAT(choice.winner->lender, Names("total i32"));
}

TEST_F(SessionLoans, OperationsOfUnknownArithmeticDoNot) {
  family_ = TotalFamily({.operations = {"total", "otherwise"}});
  tune(family_.problem(kSize));
  Problem other = family_.problem(kSize);
  other.operation = 1;
  Session session(device_, options(MissPolicy::heuristic));
  EXPECT_EQ(session.prepare(other).source, ChoiceSource::heuristic);
}

TEST_F(SessionLoans, ASimilarDeviceLendsAsManyBlocksOnEachSm) {
  DeviceFacts facts = FakeDevice::facts_with_bandwidth();
  auto first = std::make_shared<FakeDevice>(facts);
  const Candidate tuned = Session(first, options()).prepare(family_.problem(kMost)).winner->candidate;
  facts.name = "Larger GPU";
  facts.sm_count *= 2;
  Session session(std::make_shared<FakeDevice>(facts), options(MissPolicy::heuristic));
  const Choice choice = session.prepare(family_.problem(kMost));
  EXPECT_EQ(choice.winner->loan, Loan::device);
  EXPECT_EQ(choice.winner->candidate.policy, tuned.policy);
  EXPECT_EQ(choice.winner->candidate.geometry.max_blocks, 2 * tuned.geometry.max_blocks);
  EXPECT_THAT(choice.winner->lender, Names("Fake GPU"));
  facts.sm_count *= 4;
  Session unlike(std::make_shared<FakeDevice>(facts), options(MissPolicy::heuristic));
  EXPECT_EQ(unlike.prepare(family_.problem(kSize)).source, ChoiceSource::heuristic);
}

/// Each lender has a policy of its own; those of later kinds only lend when the earlier ones are not there.
TEST_F(SessionLoans, AreAskedForInTheOrderOfTheirKinds) {
  family_ = TotalFamily({.operations = {"total", "likewise"}, .arithmetic = "additions"});
  Problem other_operation = family_.problem(kSize);
  other_operation.operation = 1;
  const std::vector<std::pair<Loan, Problem>> lenders{{Loan::shape, family_.problem(2 * kSize)},
                                                      {Loan::operation, other_operation},
                                                      {Loan::context, graph_problem()},
                                                      {Loan::alignment, aligned_to(4)}};
  for (const auto& [loan, lender] : lenders) {
    tune(lender);
    Session session(device_, options(MissPolicy::heuristic));
    EXPECT_EQ(session.prepare(family_.problem(kSize)).winner->loan, loan);
  }
}

TEST_F(SessionLoans, NumericsAndNanPoliciesLendNothingToEachOther) {
  family_ = TotalFamily({.is_reproducible = true});
  tune(family_.problem(kSize));
  Session session(device_, options(MissPolicy::heuristic));
  Problem exact = aligned_to(4), ignoring = aligned_to(4);
  exact.numerics = Numerics::reproducible;
  ignoring.nan = NanPolicy::ignore;
  EXPECT_EQ(session.prepare(exact).source, ChoiceSource::heuristic);
  EXPECT_EQ(session.prepare(ignoring).source, ChoiceSource::heuristic);
  EXPECT_EQ(session.prepare(aligned_to(8)).source, ChoiceSource::nearest);
}

TEST_F(SessionLoans, APolicyMustBeValidForTheBorrower) {
  tune(aligned_to(16));
  family_ = TotalFamily({.rejects = [](const ProblemClass& asked, const Policy& policy) {
    return asked.typical().alignment < 16 && policy[0] == 256 ? "too wide" : "";
  }});
  Session session(device_, options(MissPolicy::heuristic));
  EXPECT_EQ(session.prepare(aligned_to(4)).source, ChoiceSource::heuristic);
}

TEST_F(SessionLoans, AreFoundInMemoryWithoutAFile) {
  SessionOptions without = options(MissPolicy::heuristic);
  without.cache_path.clear();
  Session session(device_, without);
  session.tune(aligned_to(16), {.budget = std::chrono::minutes(1)});
  EXPECT_EQ(session.prepare(aligned_to(4)).winner->loan, Loan::alignment);
}

TEST_F(SessionLoans, OfWinnersThatWereTunedAtOneSizeTheOneThatServesTheNearestComesFirst) {
  const auto lender = [&](const Candidate& candidate, SizeRange serves) {
    Lender made{.winner = {.candidate = candidate}, .problem = family_.problem(4 * kSaturating)};
    made.winner.sizes = {serves, {1, 1}, {1, 1}};
    return made;
  };
  const Candidate small = tune(family_.problem(kSize), kB), large = tune(family_.problem(4 * kSaturating), kA);
  for (const std::int64_t n : {64 * kSaturating, kSaturating + kSaturating / 4}) {
    std::vector<Lender> lenders{lender(small, {kSize, kSaturating}),
                                lender(large, {2 * kSaturating, 8 * kSaturating})};
    order_lenders(device_->facts(), family_.problem(n), lenders);
    ASSERT_EQ(lenders.size(), 2u) << n;
    EXPECT_EQ(lenders[0].winner.candidate, n > kSaturating * 2 ? large : small) << n;
  }
}

TEST_F(SessionLoans, OtherCodeThanWhatWasTunedMustKeepItsPromise) {
  const Problem large = family_.problem(64 * kSaturating);
  Lender lender{.winner = {.candidate = tune(family_.problem(kSaturating)), .resident_blocks = 4},
                .problem = family_.problem(kSaturating)};
  lender.winner.sizes = size_ranges(lender.problem.extents);
  const double promised = predict(device_->facts(), large, lender.winner.candidate, 4).us();
  const double most = 1.5 * std::max(promised, rank_policies(device_->facts(), large).policies[0].prediction.us());
  EXPECT_FALSE(falls_short({device_->facts(), large, lender}, 0.99 * most));
  EXPECT_TRUE(falls_short({device_->facts(), large, lender}, 1.01 * most));
  // Arrays of the lender's size that are aligned otherwise have the code that was tuned.
  const Problem unaligned = aligned_to(4, kSaturating);
  EXPECT_FALSE(falls_short({device_->facts(), unaligned, lender}, 100 * most));
  lender.other_source = true;
  EXPECT_TRUE(falls_short({device_->facts(), unaligned, lender}, 100 * most));
}

TEST(LoanKinds, StandInTheOrderOfLoan) {
  std::vector<Loan> loans;
  for (const LoanKind& kind : loan_kinds()) loans.push_back(kind.loan);
  EXPECT_THAT(loans, ElementsAre(Loan::version, Loan::alignment, Loan::context, Loan::size, Loan::operation,
                                 Loan::shape, Loan::transfer, Loan::device));
}

}  // namespace
}  // namespace hone
