// Which of the measured candidates a problem is dispatched to. Knows trials alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <hone/candidate.h>
#include <hone/problem.h>

namespace hone {

/// The registers that all blocks of a candidate occupy. The smaller one of two that are equally fast leaves more room
/// to other kernels.
std::int64_t footprint(const Trial& trial, const Problem& problem);

/// The order of a tuning's records. Measured ones come first, by how long they stayed in the race, then by time; then
/// the others by verdict. Medians compare only among those that were sampled side by side: one that was dropped may
/// have had the better clock until then.
bool is_better(const Trial& a, const Trial& b);

/// Adds the model's first choice, if `trial` is that, to finalists that are all slower: it may have dropped out by
/// samples that were taken under another load of the device than theirs.
void recall_default(Trial& trial, std::vector<Trial*>& finalists);

/// Picks one of candidates that are statistically indistinguishable, among those with almost the lowest median: on a
/// device that others use, a tie may be wide. Of these, the one with the smallest footprint; where these are equal one
/// of `known`, which serve neighbouring problems already; then the one with the lowest median. nullptr when there are
/// none.
Trial* winner_of_tie(std::span<Trial* const> tied, const Problem& problem, const std::vector<Candidate>& known);

}  // namespace hone
