#include <hone/sdk/portfolio.h>

#include <algorithm>
#include <limits>

#include "runtime/choose/regrets.h"

namespace hone {
namespace {

/// A regret beyond the bound does not serve: a sum with it is kNoTime.
double bounded(double regret, double most_regret) { return regret <= most_regret ? regret : kNoTime; }

/// The best split of the first so many sizes.
struct Split {
  std::size_t parts = std::numeric_limits<std::size_t>::max();
  double regret = 0;          ///< the sum, each part's candidate being the one with the lowest
  std::size_t last_from = 0;  ///< where its last part begins

  bool operator<=(const Split& other) const {
    return parts != other.parts ? parts < other.parts : regret <= other.regret;
  }
};

/// Where the parts of the split with the fewest begin, and of those with the lowest regret. Dynamic programming over
/// the sizes.
std::vector<std::size_t> best_split(const Regrets<TrialMatrix>& regrets, const TrialMatrix& trials,
                                    double most_regret) {
  const std::size_t sizes = trials.sizes.size();
  std::vector<Split> splits(sizes + 1);
  splits[0].parts = 0;
  std::vector<double> sums(trials.candidates);
  for (std::size_t first = 0; first < sizes; ++first) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t last = first; last < sizes; ++last) {
      for (std::size_t candidate = 0; candidate < trials.candidates; ++candidate)
        sums[candidate] += bounded(regrets.at(last, candidate), most_regret);
      const double least = *std::min_element(sums.begin(), sums.end());
      if (least == kNoTime) break;
      // The last of equal ones is taken, so that sizes at which nothing may serve go with the part below them.
      const Split split{splits[first].parts + 1, splits[first].regret + least, first};
      if (split <= splits[last + 1]) splits[last + 1] = split;
    }
  }
  std::vector<std::size_t> firsts;
  for (std::size_t end = sizes; end > 0; end = splits[end].last_from) firsts.push_back(splits[end].last_from);
  std::reverse(firsts.begin(), firsts.end());
  return firsts;
}

double sum_of_regrets(const Regrets<TrialMatrix>& regrets, const PortfolioPart& part, std::size_t candidate,
                      double most_regret) {
  double sum = 0;
  for (std::size_t size = part.first; size <= part.last; ++size)
    sum += bounded(regrets.at(size, candidate), most_regret);
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

  const std::vector<std::size_t> firsts = best_split(regrets, trials, most_regret);
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    PortfolioPart part{.first = firsts[i], .last = (i + 1 < firsts.size() ? firsts[i + 1] : sizes) - 1};
    std::vector<double> sums;
    std::vector<std::size_t> keeping;
    for (std::size_t candidate = 0; candidate < trials.candidates; ++candidate) {
      sums.push_back(sum_of_regrets(regrets, part, candidate, most_regret));
      if (sums.back() < kNoTime) keeping.push_back(candidate);
    }
    const auto is_used = [&](std::size_t candidate) {
      return std::any_of(portfolio.parts.begin(), portfolio.parts.end(),
                         [&](const PortfolioPart& earlier) { return earlier.candidate == candidate; });
    };
    part.candidate = *std::min_element(keeping.begin(), keeping.end(), [&](std::size_t a, std::size_t b) {
      if (is_used(a) != is_used(b)) return is_used(a);
      return sums[a] < sums[b];
    });
    part.serves_from = portfolio.parts.empty() ? 0 : portfolio.parts.back().serves_to + 1;
    part.serves_to = part.last + 1 == sizes ? std::numeric_limits<std::int64_t>::max() : trials.sizes[part.last];
    for (std::size_t size = part.first; size <= part.last; ++size) {
      const double regret = regrets.at(size, part.candidate);
      portfolio.worst_regret = std::max(portfolio.worst_regret, regret);
      portfolio.mean_regret += regret / static_cast<double>(sizes);
    }
    portfolio.parts.push_back(part);
  }
  return portfolio;
}

}  // namespace hone
