#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include <hone/sdk/portfolio.h>

#include "runtime/choose/regrets.h"

namespace hone {
namespace {

/// A set of shapes.
using Bits = std::vector<std::uint64_t>;

bool has(const Bits& bits, std::size_t at) { return bits[at / 64] >> (at % 64) & 1; }
void put(Bits& bits, std::size_t at) { bits[at / 64] |= std::uint64_t{1} << (at % 64); }

std::size_t count_of(const Bits& bits) {
  std::size_t count = 0;
  for (const std::uint64_t word : bits) count += static_cast<std::size_t>(std::popcount(word));
  return count;
}

Bits without(Bits from, const Bits& taken) {
  for (std::size_t i = 0; i < from.size(); ++i) from[i] &= ~taken[i];
  return from;
}

std::size_t count_common(const Bits& a, const Bits& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += static_cast<std::size_t>(std::popcount(a[i] & b[i]));
  return count;
}

/// The smallest set of candidates whose sets of shapes together hold all shapes: branch and bound.
class CoverSearch {
 public:
  /// About a tenth of a second.
  static constexpr int kMostSteps = 100000;

  CoverSearch(std::vector<Bits> covered, std::vector<double> costs)
      : covered_(std::move(covered)), costs_(std::move(costs)) {}

  std::vector<std::size_t> run(const Bits& all) {
    best_ = greedy(all);
    search(all);
    return best_;
  }
  bool is_complete() const { return steps_ <= kMostSteps; }

 private:
  /// Candidates that hold `shape`, those with the most of `left` first, and then with the least cost.
  std::vector<std::size_t> holders_of(std::size_t shape, const Bits& left) const {
    std::vector<std::size_t> holders;
    for (std::size_t candidate = 0; candidate < covered_.size(); ++candidate)
      if (has(covered_[candidate], shape)) holders.push_back(candidate);
    std::stable_sort(holders.begin(), holders.end(),
                     [&](std::size_t a, std::size_t b) { return is_better(a, b, left); });
    return holders;
  }

  bool is_better(std::size_t a, std::size_t b, const Bits& left) const {
    const std::size_t of_a = count_common(covered_[a], left);
    const std::size_t of_b = count_common(covered_[b], left);
    return of_a != of_b ? of_a > of_b : costs_[a] < costs_[b];
  }

  std::vector<std::size_t> greedy(Bits left) const {
    std::vector<std::size_t> chosen;
    while (count_of(left) > 0) {
      std::size_t best = 0;
      for (std::size_t candidate = 1; candidate < covered_.size(); ++candidate)
        if (is_better(candidate, best, left)) best = candidate;
      chosen.push_back(best);
      left = without(left, covered_[best]);
    }
    return chosen;
  }

  void search(const Bits& left) {
    const std::size_t count = count_of(left);
    if (count == 0) {
      if (chosen_.size() < best_.size()) best_ = chosen_;
      return;
    }
    std::size_t most = 1;
    for (const Bits& each : covered_) most = std::max(most, count_common(each, left));
    if (chosen_.size() + (count + most - 1) / most >= best_.size() || ++steps_ > kMostSteps) return;
    // The shape that the fewest can serve: one of them it has to be.
    std::vector<std::size_t> branches;
    for (std::size_t shape = 0; shape < 64 * left.size(); ++shape) {
      if (!has(left, shape)) continue;
      std::vector<std::size_t> holders = holders_of(shape, left);
      if (branches.empty() || holders.size() < branches.size()) branches = std::move(holders);
      if (branches.size() == 1) break;
    }
    for (const std::size_t candidate : branches) {
      chosen_.push_back(candidate);
      search(without(left, covered_[candidate]));
      chosen_.pop_back();
    }
  }

  std::vector<Bits> covered_;  ///< shapes that each candidate serves within the bound
  std::vector<double> costs_;
  std::vector<std::size_t> chosen_, best_;
  int steps_ = 0;
};

/// The only extent that differs among the shapes, or none.
bool is_line(std::span<const Extents> shapes) {
  int differing = 0;
  for (std::size_t axis = 0; axis < 3; ++axis)
    differing += std::any_of(shapes.begin(), shapes.end(),
                             [&](const Extents& each) { return each[axis] != shapes.front()[axis]; });
  return differing <= 1;
}

/// Finds out of which classes tuned shapes are, and what is between them.
class Between {
 public:
  explicit Between(std::span<const Extents> tuned)
      : tuned_(tuned), farthest_(is_line(tuned) ? std::numeric_limits<double>::infinity() : kFarthestServed) {
    first_ = last_ = size_classes(tuned.front());
    for (const Extents& each : tuned) {
      classes_.push_back(size_classes(each));
      for (std::size_t axis = 0; axis < 3; ++axis) {
        first_[axis] = std::min(first_[axis], classes_.back()[axis]);
        last_[axis] = std::max(last_[axis], classes_.back()[axis]);
      }
    }
  }

  std::vector<ShapeBetween> list() const {
    std::vector<ShapeBetween> between;
    std::array<int, 3> at{};
    for (at[0] = first_[0]; at[0] <= last_[0]; ++at[0])
      for (at[1] = first_[1]; at[1] <= last_[1]; at[1] += kClassesPerOctave)  // of lone extents alone there are more
        for (at[2] = first_[2]; at[2] <= last_[2]; at[2] += kClassesPerOctave)
          if (const std::size_t served_by = server_of(at); served_by < tuned_.size())
            between.push_back({centers(at), served_by});
    return between;
  }

 private:
  static Extents centers(const std::array<int, 3>& classes) {
    return {class_center(classes[0]), class_center(classes[1]), class_center(classes[2])};
  }

  static bool is_at_most(const std::array<int, 3>& a, const std::array<int, 3>& b) {
    return a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2];
  }

  /// tuned_.size() when it is not between them, has a tuned shape itself, or is too far from all of them; and when
  /// these are no classes of one shape.
  std::size_t server_of(const std::array<int, 3>& classes) const {
    bool has_smaller = false;
    std::size_t larger = tuned_.size(), nearest = tuned_.size();
    double larger_octaves = kNoTime, octaves_of_nearest = kNoTime;
    bool has_larger = false;
    const Extents extents = centers(classes);
    if (size_classes(extents) != classes) return tuned_.size();
    for (std::size_t i = 0; i < tuned_.size(); ++i) {
      if (classes_[i] == classes) return tuned_.size();
      const double octaves = shape_distance(extents, tuned_[i]);
      has_smaller = has_smaller || is_at_most(classes_[i], classes);
      const bool is_larger = is_at_most(classes, classes_[i]);
      has_larger = has_larger || is_larger;
      if (octaves > farthest_) continue;
      if (is_larger && octaves < larger_octaves) larger = i, larger_octaves = octaves;
      if (octaves < octaves_of_nearest) nearest = i, octaves_of_nearest = octaves;
    }
    if (!has_smaller || !has_larger) return tuned_.size();
    return larger < tuned_.size() ? larger : nearest;
  }

  std::span<const Extents> tuned_;
  const double farthest_;
  std::vector<std::array<int, 3>> classes_;
  std::array<int, 3> first_{}, last_{};
};

}  // namespace

Cover choose_cover(const ShapeTrials& trials, double most_regret) {
  const Regrets regrets(trials, trials.shapes);
  Cover cover{.candidate_of = std::vector<std::size_t>(trials.shapes, Cover::kNone)};
  const Bits none((trials.shapes + 63) / 64);
  Bits all = none;
  std::vector<Bits> covered(trials.candidates, none);
  std::vector<double> costs(trials.candidates);
  for (std::size_t shape = 0; shape < trials.shapes; ++shape) {
    if (!regrets.anything_serves(shape)) continue;
    put(all, shape);
    for (std::size_t candidate = 0; candidate < trials.candidates; ++candidate) {
      if (regrets.at(shape, candidate) > most_regret) continue;
      put(covered[candidate], shape);
      costs[candidate] += regrets.at(shape, candidate);
    }
  }
  CoverSearch search(std::move(covered), std::move(costs));
  const std::vector<std::size_t> chosen = search.run(all);
  cover.is_fewest = search.is_complete();

  std::vector<bool> is_used(trials.candidates);
  for (std::size_t shape = 0; shape < trials.shapes; ++shape) {
    if (!has(all, shape)) continue;
    const auto regret_of = [&](std::size_t candidate) { return regrets.at(shape, candidate); };
    const std::size_t best = *std::min_element(
        chosen.begin(), chosen.end(), [&](std::size_t a, std::size_t b) { return regret_of(a) < regret_of(b); });
    cover.candidate_of[shape] = best;
    cover.winners += !is_used[best];
    is_used[best] = true;
    cover.worst_regret = std::max(cover.worst_regret, regret_of(best));
    cover.mean_regret += regret_of(best) / static_cast<double>(count_of(all));
  }
  return cover;
}

std::vector<ShapeBetween> shapes_between(std::span<const Extents> tuned) {
  return tuned.empty() ? std::vector<ShapeBetween>{} : Between(tuned).list();
}

}  // namespace hone
