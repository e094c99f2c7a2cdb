// Regrets: how much longer each candidate takes than the best one, at each size or shape of a matrix of times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace hone {

inline constexpr double kNoTime = std::numeric_limits<double>::infinity();

/// Reads TrialMatrix or ShapeTrials, which must outlive it.
template <class Trials>
class Regrets {
 public:
  Regrets(const Trials& trials, std::size_t sizes) : trials_(trials), best_us_(sizes, kNoTime) {
    for (std::size_t size = 0; size < best_us_.size(); ++size)
      for (std::size_t candidate = 0; candidate < trials.candidates; ++candidate)
        if (serves(size, candidate)) best_us_[size] = std::min(best_us_[size], trials.at(size, candidate));
  }

  bool anything_serves(std::size_t size) const { return best_us_[size] < kNoTime; }

  double at(std::size_t size, std::size_t candidate) const {
    if (!anything_serves(size)) return 0;
    return serves(size, candidate) ? trials_.at(size, candidate) / best_us_[size] - 1 : kNoTime;
  }

 private:
  bool serves(std::size_t size, std::size_t candidate) const { return trials_.at(size, candidate) > 0; }

  const Trials& trials_;
  std::vector<double> best_us_;
};

}  // namespace hone
