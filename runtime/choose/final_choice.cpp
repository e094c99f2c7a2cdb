#include "runtime/choose/final_choice.h"

#include <algorithm>

#include <hone/kernel_family.h>

namespace hone {

std::int64_t footprint(const Trial& trial, const Problem& problem) {
  const int threads = problem.family->shape(problem, trial.candidate.policy).block_threads;
  return trial.candidate.geometry.max_blocks * threads * std::max(trial.resources.registers, 1);
}

bool is_better(const Trial& a, const Trial& b) {
  if (a.verdict != b.verdict) return a.verdict < b.verdict;
  if (a.verdict != Verdict::ok) return false;
  return a.samples != b.samples ? a.samples > b.samples : a.median_us < b.median_us;
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
  return tied.empty() ? nullptr : *std::min_element(tied.begin(), tied.end(), wins);
}

}  // namespace hone
