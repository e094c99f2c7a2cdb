// Which candidates are measured next: policies are said to be compiled, and nothing runs.
#include "runtime/choose/candidate_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "tests/runtime/support/fake_device.h"
#include "tests/runtime/support/total_family.h"

namespace hone {
namespace {

using testing::SizeIs;

constexpr int kAsManyAsHoped = 32;  ///< resident blocks of a policy that the ranking puts first

constexpr double kNoLeader = std::numeric_limits<double>::infinity();

class CandidateQueueTest : public testing::Test {
 protected:
  CandidateQueueTest() { problem_.launch_context = LaunchContext::graph; }

  void start() {
    order_.emplace(facts_, problem_, options_);
    queue_.emplace(facts_, problem_, options_, *order_);
  }

  std::vector<Trial> add(std::size_t place, int resident_blocks = 4) {
    return queue_->add(place, {.policy = order_->ranking()[place].policy,
                               .resources = {.registers = 32},
                               .resident_blocks = resident_blocks});
  }

  std::vector<QueuedCandidate> all(double leader_us = kNoLeader) {
    std::vector<QueuedCandidate> candidates;
    for (auto group = queue_->next_group(leader_us); !group.empty(); group = queue_->next_group(leader_us))
      for (QueuedCandidate& each : group) candidates.push_back(std::move(each));
    return candidates;
  }

  /// The first place whose policy does not come first.
  std::size_t later_place() const {
    std::size_t place = 0;
    while (order_->comes_first(place)) ++place;
    return place;
  }

  DeviceFacts facts_ = FakeDevice::facts_with_bandwidth();
  TotalFamily family_{{.space = ParameterSpace({ordinal("threads", {32, 64, 128, 256}), ordinal("work", {1, 2, 4, 8}),
                                                categorical("finish", {"alone", "joined"})})}};
  Problem problem_ = family_.problem(50000);
  TuningOptions options_;
  std::optional<SearchOrder> order_;
  std::optional<CandidateQueue> queue_;
};

TEST_F(CandidateQueueTest, AnEmptyQueueGivesNothing) {
  start();
  EXPECT_EQ(queue_->sort(), 0u);
  EXPECT_THAT(queue_->next_group(kNoLeader), SizeIs(0));
  EXPECT_FALSE(queue_->has_had_any());
}

TEST_F(CandidateQueueTest, TheModelsChoiceIsFirstThoughItsPolicyIsAddedLast) {
  start();
  add(later_place());
  add(0, kAsManyAsHoped);
  queue_->sort();
  const std::vector<QueuedCandidate> group = queue_->next_group(kNoLeader);
  ASSERT_THAT(group, SizeIs(kCandidateGroup));
  EXPECT_EQ(group[0].place, 0u);
  EXPECT_TRUE(group[0].trial.is_default);
  EXPECT_TRUE(group[0].must_be_measured);
  EXPECT_FALSE(group[1].trial.is_default);
}

TEST_F(CandidateQueueTest, TheModelsChoiceIsAnotherWhereTheCodeOfTheFirstPolicyHoldsLess) {
  start();
  add(0, 1);
  add(later_place(), kAsManyAsHoped);
  queue_->sort();
  const std::vector<QueuedCandidate> group = queue_->next_group(kNoLeader);
  EXPECT_EQ(group.at(0).place, later_place());
  EXPECT_TRUE(group.at(0).trial.is_default);
}

TEST_F(CandidateQueueTest, ThereIsOneModelsChoice) {
  start();
  add(1);
  queue_->sort();
  add(0);
  queue_->sort();
  const std::vector<QueuedCandidate> candidates = all();
  EXPECT_EQ(std::count_if(candidates.begin(), candidates.end(),
                          [](const QueuedCandidate& each) { return each.trial.is_default; }),
            1);
}

TEST_F(CandidateQueueTest, WithoutMeasurementsThePredictionsSayWhatIsNext) {
  start();
  add(0);
  add(later_place());
  const std::size_t count = queue_->sort();
  const std::vector<QueuedCandidate> candidates = all();
  ASSERT_EQ(candidates.size(), count);
  const auto optional = std::find_if(candidates.begin(), candidates.end(),
                                     [](const QueuedCandidate& each) { return !each.must_be_measured; });
  EXPECT_TRUE(std::is_sorted(optional, candidates.end(), [](const QueuedCandidate& a, const QueuedCandidate& b) {
    return a.trial.predicted_us < b.trial.predicted_us;
  }));
}

TEST_F(CandidateQueueTest, WithMeasurementsExpectedGainsSayWhatIsNextBehindWhatMustBeMeasured) {
  start();
  add(0);
  add(later_place());
  queue_->sort();
  const std::vector<QueuedCandidate> first = queue_->next_group(kNoLeader);
  for (const QueuedCandidate& each : first) order_->surrogate().observe(each.point, 3 * each.trial.predicted_us);
  const std::vector<QueuedCandidate> rest = queue_->next_group(first[0].trial.predicted_us);
  ASSERT_THAT(rest, SizeIs(kCandidateGroup));
  EXPECT_TRUE(std::is_sorted(rest.begin(), rest.end(),
                             [](const QueuedCandidate& a, const QueuedCandidate& b) { return a.gain > b.gain; }));
}

TEST_F(CandidateQueueTest, ANeighboursWinnerMustBeMeasuredOrTheBestOfItsPolicy) {
  start();
  const Policy policy = order_->ranking()[later_place()].policy;
  for (const std::int64_t blocks : {std::int64_t{8}, std::int64_t{12345}}) {
    options_.start_from = {{policy, {blocks}}};
    start();
    // A winner's policy comes first, so that its best candidate must be measured, too.
    std::size_t place = 0;
    while (order_->ranking()[place].policy != policy) ++place;
    add(place);
    queue_->sort();
    const std::vector<QueuedCandidate> candidates = all();
    const bool is_listed = std::any_of(candidates.begin(), candidates.end(), [&](const QueuedCandidate& each) {
      return each.trial.candidate == options_.start_from[0] && each.must_be_measured;
    });
    EXPECT_EQ(is_listed, blocks == 8);
    EXPECT_TRUE(candidates.front().must_be_measured);
  }
}

TEST_F(CandidateQueueTest, ExcludedCandidatesAreLeftOutWithTheirReason) {
  start();
  const Policy policy = order_->ranking()[0].policy;
  options_.excluded = {{{policy, {0}}, "its process was killed"}};
  start();
  const std::vector<Trial> left_out = add(0);
  EXPECT_EQ(queue_->sort(), 0u);
  const auto excluded = std::find_if(left_out.begin(), left_out.end(),
                                     [](const Trial& trial) { return trial.verdict == Verdict::failed; });
  ASSERT_NE(excluded, left_out.end());
  EXPECT_EQ(excluded->reason, "its process was killed");
}

TEST_F(CandidateQueueTest, CandidatesAskedForByNameAreTheOnlyOnes) {
  options_.only = {{{64, 1, 0}, {1 << 20}}, {{64, 1, 1}, {8}}};
  options_.workspace_bytes = 0;
  start();
  std::vector<Trial> left_out;
  for (std::size_t place = 0; place < order_->ranking().size(); ++place)
    for (Trial& trial : add(place)) left_out.push_back(std::move(trial));
  ASSERT_EQ(queue_->sort(), 1u);
  const QueuedCandidate candidate = queue_->next_group(kNoLeader).at(0);
  EXPECT_EQ(candidate.trial.candidate, options_.only[0]) << "though its grid is larger than the work";
  EXPECT_FALSE(candidate.trial.is_default);
  ASSERT_THAT(left_out, SizeIs(1)) << "joined needs a workspace";
  EXPECT_EQ(left_out[0].candidate, options_.only[1]);
}

TEST_F(CandidateQueueTest, APolicyAskedForWithoutAGridHasAllOfThem) {
  start();
  const Policy policy = order_->ranking()[0].policy;
  add(0);
  const std::size_t grids = queue_->sort();
  options_.only = {{policy, {0}}};
  start();
  ASSERT_THAT(order_->ranking(), SizeIs(1));
  add(0);
  EXPECT_GT(grids, 1u);
  EXPECT_EQ(queue_->sort(), grids);
}

TEST_F(CandidateQueueTest, WhatWasPassedOverComesBackAsARelativeOfALaterLeader) {
  start();
  add(0);
  queue_->sort();
  std::vector<QueuedCandidate> group = queue_->next_group(kNoLeader);
  const Candidate leader = group[0].trial.candidate;
  const double us = group[0].trial.predicted_us;
  for (std::size_t i = 1; i < group.size(); ++i) queue_->pass_over(std::move(group[i]));
  for (QueuedCandidate& each : all()) queue_->pass_over(std::move(each));
  EXPECT_TRUE(queue_->require_relatives(leader, us));
  EXPECT_GT(queue_->sort(), 0u);
  const std::vector<QueuedCandidate> again = all();
  EXPECT_EQ(
      std::count_if(again.begin(), again.end(), [](const QueuedCandidate& each) { return each.must_be_measured; }), 1)
      << "one grid of the leader's policy";
}

TEST_F(CandidateQueueTest, WhatIsFarFromTheLeaderStaysPassedOver) {
  start();
  add(0);
  queue_->sort();
  for (QueuedCandidate& each : all()) queue_->pass_over(std::move(each));
  const Candidate other{{32, 8, 1}, {8}};
  EXPECT_FALSE(queue_->require_relatives(other, 1e-3));
  EXPECT_EQ(queue_->sort(), 0u);
  EXPECT_GT(queue_->take_passed_over().size(), 0u);
}

}  // namespace
}  // namespace hone
