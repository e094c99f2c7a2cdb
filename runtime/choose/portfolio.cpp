#include <hone/portfolio.h>

#include <algorithm>
#include <limits>

#include "runtime/choose/regrets.h"

namespace hone {
namespace {

/// What a part may choose from: candidates that keep the bound from its first to its last size.
struct Reach {
  std::size_t last = 0;
  std::vector<std::size_t> candidates;
};

/// The longest part that begins at `first`.
Reach longest(const Regrets<TrialMatrix>& regrets, const TrialMatrix& trials, std::size_t first, double most_regret) {
  Reach reach;
  for (std::size_t candidate = 0; candidate < trials.candidates; ++candidate) {
    std::size_t end = first;
    while (end < trials.sizes.size() && regrets.at(end, candidate) <= most_regret) ++end;
    if (end == first) continue;
    if (reach.candidates.empty() || end - 1 > reach.last) reach = {.last = end - 1, .candidates = {}};
    if (end - 1 == reach.last) reach.candidates.push_back(candidate);
  }
  return reach;
}

double sum_of_regrets(const Regrets<TrialMatrix>& regrets, const PortfolioPart& part, std::size_t candidate) {
  double sum = 0;
  for (std::size_t size = part.first; size <= part.last; ++size) sum += regrets.at(size, candidate);
  return sum;
}

}  // namespace

Portfolio choose_portfolio(const TrialMatrix& trials, double most_regret) {
  const Regrets regrets(trials, trials.sizes.size());
  Portfolio portfolio;
  const std::size_t sizes = trials.sizes.size();
  bool anything = false;
  for (std::size_t size = 0; size < sizes; ++size) anything = anything || regrets.anything_serves(size);
  if (!anything) return portfolio;

  // Taking the longest part every time gives the fewest: any other split is never ahead of it.
  for (std::size_t first = 0; first < sizes;) {
    Reach reach = longest(regrets, trials, first, most_regret);
    PortfolioPart part{.first = first, .last = reach.last};
    const auto is_used = [&](std::size_t candidate) {
      return std::any_of(portfolio.parts.begin(), portfolio.parts.end(),
                         [&](const PortfolioPart& earlier) { return earlier.candidate == candidate; });
    };
    part.candidate = *std::min_element(
        reach.candidates.begin(), reach.candidates.end(), [&](std::size_t a, std::size_t b) {
          if (is_used(a) != is_used(b)) return is_used(a);
          return sum_of_regrets(regrets, part, a) < sum_of_regrets(regrets, part, b);
        });
    part.serves_from = portfolio.parts.empty() ? 0 : portfolio.parts.back().serves_to + 1;
    part.serves_to = part.last + 1 == sizes ? std::numeric_limits<std::int64_t>::max() : trials.sizes[part.last];
    for (std::size_t size = part.first; size <= part.last; ++size) {
      const double regret = regrets.at(size, part.candidate);
      portfolio.worst_regret = std::max(portfolio.worst_regret, regret);
      portfolio.mean_regret += regret / static_cast<double>(sizes);
    }
    portfolio.parts.push_back(part);
    first = part.last + 1;
  }
  return portfolio;
}

}  // namespace hone
