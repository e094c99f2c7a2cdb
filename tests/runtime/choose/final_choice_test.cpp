// Who wins among measured candidates.
#include "runtime/choose/final_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/runtime/support/total_family.h"

namespace hone {
namespace {

class FinalChoiceTest : public testing::Test {
 protected:
  static Trial trial(const Candidate& candidate, double median_us, int registers = 32) {
    return {.candidate = candidate,
            .resources = {.registers = registers},
            .median_us = median_us,
            .samples = 9,
            .verdict = Verdict::ok};
  }

  /// The index of the winner.
  std::ptrdiff_t winner(std::vector<Trial> tied, const std::vector<Candidate>& known = {}) const {
    std::vector<Trial*> pointers;
    for (Trial& each : tied) pointers.push_back(&each);
    return winner_of_tie(pointers, problem_, known) - tied.data();
  }

  TotalFamily family_;
  Problem problem_ = family_.problem(1000);
};

TEST_F(FinalChoiceTest, AFootprintIsAllRegistersOfAllThreads) {
  EXPECT_EQ(footprint(trial({{128, 1, 0}, {8}}, 1), problem_), 8 * 128 * 32);
  EXPECT_EQ(footprint(trial({{128, 1, 0}, {8}}, 1, 0), problem_), 8 * 128) << "the host tells of no registers";
}

TEST_F(FinalChoiceTest, ATieGoesToTheSmallestFootprint) {
  EXPECT_EQ(
      winner({trial({{128, 1, 0}, {16}}, 1.00), trial({{128, 1, 0}, {8}}, 1.01), trial({{256, 1, 0}, {8}}, 0.99)}), 1);
}

TEST_F(FinalChoiceTest, AFootprintIsNotWorthMuchTime) {
  const Trial lean = trial({{128, 1, 0}, {8}}, 145), fast = trial({{256, 1, 0}, {16}}, 100);
  EXPECT_EQ(winner({lean, fast}), 1) << "a tie of a wide spread";
  EXPECT_EQ(winner({trial(lean.candidate, 100.9), fast}), 0);
}

TEST_F(FinalChoiceTest, NothingWinsThatIsSlowerThanTheModelsFirstChoice) {
  Trial first = trial({{128, 1, 0}, {8}}, 69), other = trial({{256, 1, 0}, {8}}, 100);
  std::vector<Trial*> finalists{&other};
  recall_default(first, finalists);
  EXPECT_EQ(finalists, std::vector<Trial*>{&other}) << "it is not the first choice";
  first.is_default = true;
  first.verdict = Verdict::wrong;
  recall_default(first, finalists);
  EXPECT_EQ(finalists.size(), 1u);
  first.verdict = Verdict::ok;
  recall_default(first, finalists);
  ASSERT_EQ(finalists.size(), 2u);
  EXPECT_EQ(winner_of_tie(finalists, problem_, {}), &first);
  recall_default(first, finalists);
  EXPECT_EQ(finalists.size(), 2u) << "it is among them";
}

TEST_F(FinalChoiceTest, ThenToWhatServesANeighbourThenToTheLowerMedian) {
  const std::vector<Trial> tied{trial({{128, 1, 0}, {8}}, 1.00), trial({{128, 2, 0}, {8}}, 0.99),
                                trial({{128, 4, 0}, {8}}, 1.01)};
  EXPECT_EQ(winner(tied), 1);
  EXPECT_EQ(winner(tied, {tied[2].candidate}), 2);
}

TEST_F(FinalChoiceTest, WithoutCandidatesThereIsNoWinner) { EXPECT_EQ(winner_of_tie({}, problem_, {}), nullptr); }

TEST_F(FinalChoiceTest, RecordsAreSortedByVerdictThenByHowLongTheyStayedThenByTime) {
  std::vector<Trial> trials{{.median_us = 1, .samples = 3, .verdict = Verdict::wrong},
                            {.median_us = 2, .samples = 3, .verdict = Verdict::ok},
                            {.verdict = Verdict::rejected},
                            {.median_us = 4, .samples = 9, .verdict = Verdict::ok},
                            {.median_us = 3, .samples = 9, .verdict = Verdict::ok}};
  std::stable_sort(trials.begin(), trials.end(), is_better);
  std::vector<double> medians;
  for (const Trial& each : trials) medians.push_back(each.median_us);
  EXPECT_EQ(medians, (std::vector<double>{3, 4, 2, 1, 0}));
}

}  // namespace
}  // namespace hone
