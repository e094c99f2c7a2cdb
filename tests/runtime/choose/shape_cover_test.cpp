#include <hone/sdk/portfolio.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <random>

namespace hone {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

ShapeTrials trials_of(const std::vector<std::vector<double>>& rows) {
  ShapeTrials trials{.shapes = rows.size(), .candidates = rows.front().size(), .us = {}};
  for (const auto& row : rows) trials.us.insert(trials.us.end(), row.begin(), row.end());
  return trials;
}

double best_at(const ShapeTrials& trials, std::size_t shape) {
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < trials.candidates; ++c)
    if (trials.at(shape, c) > 0) best = std::min(best, trials.at(shape, c));
  return best;
}

/// The size of the smallest cover, by trying every set.
std::size_t fewest(const ShapeTrials& trials, double most_regret) {
  std::size_t found = trials.candidates;
  for (unsigned set = 1; set < 1u << trials.candidates; ++set) {
    bool covers = true;
    for (std::size_t shape = 0; shape < trials.shapes && covers; ++shape) {
      covers = false;
      for (std::size_t c = 0; c < trials.candidates; ++c)
        covers = covers || ((set >> c & 1) && trials.at(shape, c) > 0 &&
                            trials.at(shape, c) <= (1 + most_regret) * best_at(trials, shape));
    }
    if (covers) found = std::min(found, static_cast<std::size_t>(std::popcount(set)));
  }
  return found;
}

TEST(ShapeCover, OneCandidateThatIsNearlyBestEverywhereServesAll) {
  const Cover cover = choose_cover(trials_of({{2.00, 2.01, 9}, {3.03, 3.00, 9}, {9, 4.03, 4.00}}));
  EXPECT_THAT(cover.candidate_of, ElementsAre(1, 1, 1));
  EXPECT_EQ(cover.winners, 1u);
  EXPECT_NEAR(cover.worst_regret, 0.0075, 1e-9);
  EXPECT_TRUE(cover.is_fewest);
}

TEST(ShapeCover, EachShapeGetsTheFastestOfTheChosen) {
  // 0 alone serves the first shape and 1 alone the last; both serve the second, 1 the better.
  const Cover cover = choose_cover(trials_of({{1, 2}, {1.009, 1}, {2, 1}}));
  EXPECT_THAT(cover.candidate_of, ElementsAre(0, 1, 1));
}

TEST(ShapeCover, IsNotMisledByWhatServesTheMost) {
  // The greedy choice takes 0, which serves four, and then needs two more; 1 and 2 serve three each, and all.
  const double no = 9;
  const Cover cover =
      choose_cover(trials_of({{1, 1, no}, {1, 1, no}, {no, 1, no}, {1, no, 1}, {1, no, 1}, {no, no, 1}}));
  EXPECT_EQ(cover.winners, 2u);
  EXPECT_THAT(cover.candidate_of, ElementsAre(1, 1, 1, 2, 2, 2));
}

TEST(ShapeCover, ShapesThatNothingServesGetNothing) {
  const Cover cover = choose_cover(trials_of({{1, 2}, {0, 0}, {0, 3}}));
  EXPECT_THAT(cover.candidate_of, ElementsAre(0, Cover::kNone, 1));
  EXPECT_EQ(choose_cover({}).winners, 0u);
}

TEST(ShapeCover, KeepsTheBoundWithTheFewestOnInventedTimes) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> spread(1.0, 1.08);
  for (int run = 0; run < 300; ++run) {
    ShapeTrials trials{.shapes = 2 + random() % 70, .candidates = 1 + random() % 8, .us = {}};
    for (std::size_t i = 0; i < trials.shapes * trials.candidates; ++i)
      trials.us.push_back(random() % 9 == 0 ? 0 : 5 * spread(random));
    const Cover cover = choose_cover(trials, 0.03);
    ASSERT_TRUE(cover.is_fewest);
    bool all_served = true;
    for (std::size_t shape = 0; shape < trials.shapes; ++shape) {
      const std::size_t chosen = cover.candidate_of[shape];
      if (chosen == Cover::kNone) {
        EXPECT_EQ(best_at(trials, shape), std::numeric_limits<double>::infinity());
        all_served = false;
        continue;
      }
      EXPECT_GT(trials.at(shape, chosen), 0);
      EXPECT_LE(trials.at(shape, chosen), 1.03 * best_at(trials, shape) * (1 + 1e-12));
    }
    if (all_served) {
      EXPECT_EQ(cover.winners, fewest(trials, 0.03)) << run;
    }
  }
}

TEST(ShapesBetween, OfALineAreServedByTheNextLargerSizeHoweverFar) {
  const std::vector<Extents> tuned{{1024, 1, 1}, {1448, 1, 1}, {1 << 11, 1, 1}};
  EXPECT_THAT(shapes_between(tuned), ElementsAre(ShapeBetween{{1217, 1, 1}, 1}, ShapeBetween{{1722, 1, 1}, 2}));
  const std::vector<Extents> columns{{64, 256, 1}, {64, 2048, 1}};
  EXPECT_THAT(shapes_between(columns), ElementsAre(ShapeBetween{{64, 512, 1}, 1}, ShapeBetween{{64, 1024, 1}, 1}));
}

TEST(ShapesBetween, OfAGridAreServedByTheNearestLargerOne) {
  std::vector<Extents> tuned;
  for (const std::int64_t rows : {16, 64})
    for (const std::int64_t columns : {16, 64}) tuned.push_back({rows, columns, 1});
  EXPECT_THAT(shapes_between(tuned),
              UnorderedElementsAre(ShapeBetween{{16, 32, 1}, 1}, ShapeBetween{{32, 16, 1}, 2},
                                   ShapeBetween{{32, 32, 1}, 3}, ShapeBetween{{32, 64, 1}, 3},
                                   ShapeBetween{{64, 32, 1}, 3}));
}

TEST(ShapesBetween, AreNotThoseFarFromAllTunedOnes) {
  // Tall and flat ones, and nothing square: what is between them in one extent is outside in the other.
  EXPECT_THAT(shapes_between(std::vector<Extents>{{1 << 20, 8, 1}, {8, 1 << 20, 1}}), IsEmpty());
  // The corners of a box of ten octaves leave its middle alone.
  for (const ShapeBetween& each : shapes_between(std::vector<Extents>{{16, 16, 1}, {1 << 14, 1 << 14, 1}})) {
    const double nearest = std::min(shape_distance(each.extents, {16, 16, 1}),
                                    shape_distance(each.extents, {1 << 14, 1 << 14, 1}));
    EXPECT_LE(nearest, kFarthestServed);
  }
}

TEST(ShapesBetween, AreNoneForOneShapeAndForNone) {
  EXPECT_THAT(shapes_between({}), IsEmpty());
  EXPECT_THAT(shapes_between(std::vector<Extents>{{512, 512, 1}}), IsEmpty());
}

}  // namespace
}  // namespace hone
