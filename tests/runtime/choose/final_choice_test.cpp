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
