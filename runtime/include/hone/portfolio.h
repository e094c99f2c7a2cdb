// choose_portfolio(): few winners that serve many sizes almost as well as each size's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hone {

/// Times of the same candidates at several sizes of one problem. Pure numbers.
struct TrialMatrix {
  std::vector<std::int64_t> sizes;  ///< ascending
  std::size_t candidates = 0;
  std::vector<double> us;           ///< us[size × candidates + candidate]; not positive: it may not serve there

  double at(std::size_t size, std::size_t candidate) const { return us[size * candidates + candidate]; }
};

/// A run of neighbouring sizes with one candidate.
struct PortfolioPart {
  std::size_t candidate = 0;
  std::size_t first = 0;  ///< indices of sizes, both included
  std::size_t last = 0;
  std::int64_t serves_from = 0;  ///< the sizes that it serves, measured or not, both included
  std::int64_t serves_to = 0;

  bool operator==(const PortfolioPart&) const = default;
};

struct Portfolio {
  std::vector<PortfolioPart> parts;  ///< in the order of the sizes; together they serve 0 to the largest integer
  double worst_regret = 0;           ///< at the measured sizes: time ÷ the best candidate's time there − 1
  double mean_regret = 0;
};

/// Splits the sizes into as few parts as possible such that in each one candidate is within `most_regret` (0.01: 1 %)
/// of the best at every measured size; among such splits, one with few different candidates, and then with a low
/// regret. Sizes at which nothing may serve belong to no bound and go with the part below them (with the first part at
/// the start). Empty when no candidate may serve anywhere.
///
/// What is guaranteed: at a measured size the time is at most (1 + most_regret) × the best measured there. A part
/// serves from just above the last size of the part before it up to its own last size; so for a size n that was not
/// measured, between the measured a < n < b, the candidate is one that keeps the bound at b, and where times do not
/// fall as n grows it takes at most (1 + most_regret) × the best time at b.
Portfolio choose_portfolio(const TrialMatrix& trials, double most_regret = 0.01);

}  // namespace hone
