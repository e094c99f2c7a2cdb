#include "runtime/measure/elimination.h"

#include <algorithm>
#include <random>
#include <span>

#include "runtime/measure/statistics.h"

namespace hone {
namespace {

/// The field of one elimination; racers by their index.
class Field {
 public:
  Field(const std::vector<Racer*>& racers, const EliminationRules& rules) : racers_(racers), rules_(rules) {
    for (std::size_t i = 0; i < racers.size(); ++i)
      if (!racers[i]->samples_us.empty()) left_.push_back(i);
    sort();
  }

  const std::vector<std::size_t>& left() const { return left_; }

  /// Drops whoever is slower for sure, and the slower half of a large field.
  void narrow(bool is_first_round) {
    sort();
    if (has_pairs(left_.front())) {
      // Intervals of a drifting clock overlap however clear the pairs are, and a median alone may mislead.
      const std::size_t fastest = fastest_by_pairs();
      std::erase_if(left_, [&](std::size_t racer) {
        return compare(racer, fastest) == Comparison::slower && !is_as_good(racer, fastest);
      });
    } else {
      const double allowance = is_first_round ? 1 + rules_.drift_allowance : 1;
      const double limit = estimate_of(left_.front()).high_us * allowance + indifferent_us(left_.front());
      std::erase_if(left_, [&](std::size_t racer) { return estimate_of(racer).low_us > limit; });
    }
    if (left_.size() > rules_.halve_above && !is_constant())
      left_.resize(std::max(rules_.halve_above, (left_.size() + 1) / 2));
  }

  /// One sample each, in a random order.
  void sample_all(std::mt19937& random, const TakeSample& take_sample) {
    std::vector<std::size_t> order = left_;
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t racer : order)
      if (!take_sample(racer)) std::erase(left_, racer);
  }

  /// True where every sample of all that are left is the same number, such as what the host takes to enqueue a call:
  /// more of them would say nothing else.
  bool is_constant() const {
    const double first = racers_[left_.front()]->samples_us.front();
    return std::all_of(left_.begin(), left_.end(), [&](std::size_t racer) {
      const std::vector<double>& samples = racers_[racer]->samples_us;
      return std::all_of(samples.begin(), samples.end(), [&](double us) { return us == first; });
    });
  }

  /// True where all that are left are a tie whatever more samples say: their differences are below what the clock
  /// shows, or not worth telling.
  bool is_settled() const {
    if (is_constant()) return true;
    const std::size_t fastest = fastest_by_pairs();
    return std::all_of(left_.begin(), left_.end(),
                       [&](std::size_t racer) { return racer == fastest || is_as_good(racer, fastest); });
  }

  std::vector<std::size_t> tied_with_the_fastest() {
    sort();
    if (left_.empty()) return {};
    const std::size_t fastest = fastest_by_pairs();
    std::vector<std::size_t> tied{fastest};
    for (std::size_t racer : left_)
      if (racer != fastest && ((compare(racer, fastest) == Comparison::tied && overlaps(racer, fastest)) ||
                               is_as_good(racer, fastest)))
        tied.push_back(racer);
    return tied;
  }

 private:
  Estimate estimate_of(std::size_t racer) const {
    return estimate(racers_[racer]->samples_us, racers_[racer]->resolution_us);
  }

  /// The samples that were taken in rounds, all racers in turn.
  std::span<const double> side_by_side(std::size_t racer) const {
    const std::span<const double> samples = racers_[racer]->samples_us;
    return samples.subspan(std::min(rules_.first_samples, samples.size()));
  }

  double indifferent_us(std::size_t fastest) const {
    return std::max(rules_.indifference * median(racers_[fastest]->samples_us), rules_.indifferent_us);
  }

  /// True where their difference is for sure below what the clock shows, or not worth telling.
  bool is_as_good(std::size_t racer, std::size_t fastest) const {
    return differ_by_less(side_by_side(racer), side_by_side(fastest),
                          std::max(resolution_of(racer, fastest) / 2, indifferent_us(fastest)));
  }

  double resolution_of(std::size_t a, std::size_t b) const {
    return std::max(racers_[a]->resolution_us, racers_[b]->resolution_us);
  }

  Comparison compare(std::size_t a, std::size_t b) const {
    return compare_pairs(side_by_side(a), side_by_side(b), resolution_of(a, b));
  }

  bool has_pairs(std::size_t racer) const { return side_by_side(racer).size() >= kFewestPairs; }

  /// The lowest median may be luck: whoever beats it side by side is faster.
  std::size_t fastest_by_pairs() const {
    std::size_t fastest = left_.front();
    for (std::size_t racer : left_)
      if (compare(racer, fastest) == Comparison::faster) fastest = racer;
    return fastest;
  }

  /// Without enough pairs the intervals must do.
  bool overlaps(std::size_t a, std::size_t b) const {
    return has_pairs(a) || estimate_of(a).low_us <= estimate_of(b).high_us;
  }

  void sort() {
    std::vector<double> medians(racers_.size());
    for (std::size_t racer : left_) medians[racer] = median(racers_[racer]->samples_us);
    std::stable_sort(left_.begin(), left_.end(),
                     [&](std::size_t a, std::size_t b) { return medians[a] < medians[b]; });
  }

  const std::vector<Racer*>& racers_;
  const EliminationRules& rules_;
  std::vector<std::size_t> left_;  ///< fastest first, after sort()
};

}  // namespace

std::vector<std::size_t> eliminate(std::vector<Racer*>& racers, const EliminationRules& rules,
                                   const TakeSample& take_sample, const std::function<bool()>& keep_going) {
  std::mt19937 random(rules.seed);
  Field field(racers, rules);
  if (field.left().size() > 1) field.narrow(true);
  for (std::size_t samples = rules.first_samples;
       samples < rules.most_samples && field.left().size() > 1 && !field.is_settled();) {
    const std::size_t more = std::min(samples, rules.most_samples - samples);
    for (std::size_t i = 0; i < more && keep_going(); ++i) field.sample_all(random, take_sample);
    if (!keep_going()) break;
    samples += more;
    if (field.left().size() > 1) field.narrow(false);
  }
  return field.tied_with_the_fastest();
}

}  // namespace hone
