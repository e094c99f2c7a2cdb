#include "runtime/choose/final_choice.h"

#include <algorithm>
#include <iterator>

#include <hone/kernel_family.h>

#include "runtime/measure/elimination.h"

namespace hone {
namespace {

/// A smaller footprint is worth this share of the time, as hone tune's --regret lets a size be behind.
constexpr double kWorthOfFootprint = 0.01;

}  // namespace

std::int64_t footprint(const Trial& trial, const Problem& problem) {
  const int threads = problem.family->shape(problem, trial.candidate.policy).block_threads;
  return trial.candidate.geometry.max_blocks * threads * std::max(trial.resources.registers, 1);
}

bool is_better(const Trial& a, const Trial& b) {
  if (a.verdict != b.verdict) return a.verdict < b.verdict;
  if (a.verdict != Verdict::ok) return false;
  return a.samples != b.samples ? a.samples > b.samples : a.median_us < b.median_us;
}

void recall_default(Trial& trial, std::vector<Trial*>& finalists) {
  if (!trial.is_default || trial.verdict != Verdict::ok || finalists.empty()) return;
  if (std::ranges::all_of(finalists, [&](const Trial* each) { return each->median_us > trial.median_us; }))
    finalists.push_back(&trial);
}

Trial* winner_of_tie(std::span<Trial* const> tied, const Problem& problem, const std::vector<Candidate>& known) {
  const auto is_known = [&](const Trial& trial) {
    return std::find(known.begin(), known.end(), trial.candidate) != known.end();
  };
  const auto wins = [&](const Trial* a, const Trial* b) {
    const std::int64_t footprint_a = footprint(*a, problem);
    const std::int64_t footprint_b = footprint(*b, problem);
    if (footprint_a != footprint_b) return footprint_a < footprint_b;
    if (is_known(*a) != is_known(*b)) return is_known(*a);
    return a->median_us < b->median_us;
  };
  if (tied.empty()) return nullptr;
  const double best_us = (*std::ranges::min_element(tied, {}, &Trial::median_us))->median_us;
  const double most_us = best_us + std::max(kWorthOfFootprint * best_us, EliminationRules{}.indifferent_us);
  std::vector<Trial*> close;
  std::ranges::copy_if(tied, std::back_inserter(close), [&](const Trial* each) { return each->median_us <= most_us; });
  return *std::ranges::min_element(close, wins);
}

}  // namespace hone
