#include <hone/sdk/portfolio.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace hone {
namespace {

/// Rows are sizes, powers of two from 2^10 on; columns are candidates.
TrialMatrix matrix(const std::vector<std::vector<double>>& rows) {
  TrialMatrix trials;
  trials.candidates = rows.empty() ? 0 : rows.front().size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    trials.sizes.push_back(std::int64_t{1} << (10 + i));
    trials.us.insert(trials.us.end(), rows[i].begin(), rows[i].end());
  }
  return trials;
}

double best_at(const TrialMatrix& trials, std::size_t size) {
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < trials.candidates; ++c)
    if (trials.at(size, c) > 0) best = std::min(best, trials.at(size, c));
  return best;
}

/// The fewest parts, by trying out every end of every part.
std::size_t fewest_parts(const TrialMatrix& trials, double most_regret) {
  const std::size_t n = trials.sizes.size();
  std::vector<std::size_t> parts(n + 1, n + 1);
  parts[0] = 0;
  for (std::size_t end = 1; end <= n; ++end)
    for (std::size_t begin = 0; begin < end; ++begin)
      for (std::size_t c = 0; c < trials.candidates; ++c) {
        bool keeps = true;
        for (std::size_t size = begin; size < end; ++size)
          keeps = keeps && trials.at(size, c) > 0 && trials.at(size, c) <= (1 + most_regret) * best_at(trials, size);
        if (keeps) parts[end] = std::min(parts[end], parts[begin] + 1);
      }
  return parts[n];
}

TEST(Portfolio, OneCandidateThatIsNearlyBestEverywhereServesAll) {
  const Portfolio portfolio = choose_portfolio(matrix({{2.00, 2.01, 9}, {3.03, 3.00, 9}, {9, 4.03, 4.00}}));
  ASSERT_EQ(portfolio.parts.size(), 1u);
  EXPECT_EQ(portfolio.parts[0].candidate, 1u);
  EXPECT_EQ(portfolio.parts[0].serves_from, 0);
  EXPECT_EQ(portfolio.parts[0].serves_to, std::numeric_limits<std::int64_t>::max());
  EXPECT_NEAR(portfolio.worst_regret, 0.0075, 1e-9);
}

TEST(Portfolio, APartEndsWhereItsCandidateFallsBehind) {
  const Portfolio portfolio = choose_portfolio(matrix({{2, 3}, {3, 3.5}, {5, 4}, {9, 6}}));
  ASSERT_EQ(portfolio.parts.size(), 2u);
  EXPECT_EQ(portfolio.parts[0], (PortfolioPart{0, 0, 1, 0, 2048}));
  EXPECT_EQ(portfolio.parts[1], (PortfolioPart{1, 2, 3, 2049, std::numeric_limits<std::int64_t>::max()}));
  EXPECT_EQ(portfolio.worst_regret, 0);
}

TEST(Portfolio, OfTwoPartsTheFasterOneServesWhatBothMayServe) {
  const Portfolio portfolio = choose_portfolio(matrix({{2, 9}, {3.02, 3}, {5, 4}}));
  ASSERT_EQ(portfolio.parts.size(), 2u);
  EXPECT_EQ(portfolio.parts[0].last, 0u) << "though it could keep its bound at the second size";
  EXPECT_EQ(portfolio.worst_regret, 0);
}

TEST(Portfolio, ALooserBoundNeedsFewerParts) {
  const TrialMatrix trials = matrix({{2, 2.1}, {3, 2.95}, {5, 4.9}, {9, 9.2}});
  EXPECT_EQ(choose_portfolio(trials, 0).parts.size(), 3u);
  EXPECT_EQ(choose_portfolio(trials, 0.03).parts.size(), 1u);
}

TEST(Portfolio, AnEarlierWinnerIsTakenAgainWhereItWillDo) {
  // At the last size 0 and 2 are equal; 0 serves the first already.
  const Portfolio portfolio = choose_portfolio(matrix({{2, 3, 4}, {9, 3, 9}, {5, 9, 5}}));
  ASSERT_EQ(portfolio.parts.size(), 3u);
  EXPECT_EQ(portfolio.parts[2].candidate, 0u);
}

TEST(Portfolio, OfThoseThatReachAsFarTheFasterOneServes) {
  EXPECT_EQ(choose_portfolio(matrix({{2.01, 2.00}, {3, 3}})).parts.at(0).candidate, 1u);
}

TEST(Portfolio, WhatWasNotMeasuredSomewhereDoesNotServeThere) {
  const Portfolio portfolio = choose_portfolio(matrix({{2, 2.01}, {0, 3}, {4, 0}}));
  ASSERT_EQ(portfolio.parts.size(), 2u);
  EXPECT_EQ(portfolio.parts[0].candidate, 1u);
  EXPECT_EQ(portfolio.parts[1].candidate, 0u);
}

TEST(Portfolio, WithoutTrialsThereAreNoParts) {
  EXPECT_TRUE(choose_portfolio(matrix({})).parts.empty());
  EXPECT_TRUE(choose_portfolio(matrix({{0, 0}, {0, 0}})).parts.empty());
}

TEST(Portfolio, SizesWithoutTrialsGoWithTheirNeighbours) {
  const Portfolio portfolio = choose_portfolio(matrix({{0, 0}, {2, 3}, {0, 0}, {5, 4}}));
  ASSERT_EQ(portfolio.parts.size(), 2u);
  EXPECT_EQ(portfolio.parts[0], (PortfolioPart{0, 0, 2, 0, 4096}));
}

TEST(Portfolio, KeepsItsBoundWithTheFewestParts) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int run = 0; run < 200; ++run) {
    std::vector<std::vector<double>> rows(12, std::vector<double>(6));
    for (auto& row : rows)
      for (double& us : row) us = 10 * (1 + 0.03 * uniform(random));
    const TrialMatrix trials = matrix(rows);
    const Portfolio portfolio = choose_portfolio(trials);
    EXPECT_EQ(portfolio.parts.size(), fewest_parts(trials, 0.01));
    EXPECT_LE(portfolio.worst_regret, 0.01);
    EXPECT_LE(portfolio.mean_regret, portfolio.worst_regret);
    std::size_t next = 0;
    for (const PortfolioPart& part : portfolio.parts) {
      EXPECT_EQ(part.first, next);
      next = part.last + 1;
      for (std::size_t size = part.first; size <= part.last; ++size)
        EXPECT_LE(trials.at(size, part.candidate), 1.01 * best_at(trials, size) + 1e-12);
    }
    EXPECT_EQ(next, rows.size());
  }
}

/// Candidates as the machine would have them: a launch, and bytes at a bandwidth that the candidate can draw.
double invented_us(std::size_t candidate, std::int64_t n) {
  const double fixed_us = 2 + static_cast<double>(candidate);
  const double elements_per_us = 2000 * std::pow(3.0, static_cast<double>(candidate));
  return fixed_us + static_cast<double>(n) / elements_per_us;
}

TEST(Portfolio, SizesThatWereNotMeasuredStayWithinTheBoundOfTheNextMeasuredOne) {
  TrialMatrix trials;
  trials.candidates = 6;
  for (int exponent = 8; exponent <= 24; ++exponent) {
    trials.sizes.push_back(std::int64_t{1} << exponent);
    for (std::size_t c = 0; c < trials.candidates; ++c) trials.us.push_back(invented_us(c, trials.sizes.back()));
  }
  const Portfolio portfolio = choose_portfolio(trials);
  EXPECT_LE(portfolio.parts.size(), 6u);
  for (std::size_t i = 0; i + 1 < trials.sizes.size(); ++i) {
    for (const double between : {1.01, 1.3, 1.5, 1.9}) {
      const auto n = static_cast<std::int64_t>(static_cast<double>(trials.sizes[i]) * between);
      const auto part = std::find_if(portfolio.parts.begin(), portfolio.parts.end(), [&](const PortfolioPart& one) {
        return one.serves_from <= n && n <= one.serves_to;
      });
      ASSERT_NE(part, portfolio.parts.end());
      EXPECT_LE(invented_us(part->candidate, n), 1.01 * best_at(trials, i + 1)) << n;
    }
  }
}

}  // namespace
}  // namespace hone
