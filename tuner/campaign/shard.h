// Shard: the part of a campaign that one of several machines tunes. Pure selection: every machine finds the same parts.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/campaign/campaign.h"

namespace hone::tuner {

struct Shard {
  std::size_t index = 1;  ///< from 1 to `count`
  std::size_t count = 1;
};

/// "3/8". Throws CommandError(usage) unless 1 ≤ index ≤ count.
Shard parse_shard(std::string_view text);

/// The time that tuning a problem takes, next to that of one without elements. The compiler and launches take the same
/// for every size; measuring moves the arrays over and over, which takes as long again for each GiB of them (assumed).
double tuning_cost(const Problem& problem);

/// The problems of one shard, in their order. All shards together have each problem once, and cost alike.
///
/// A size sweep stays in one shard, because its winners are compared with each other. One that costs more than a shard
/// should is divided into runs of neighbouring sizes.
std::vector<WeightedProblem> problems_of_shard(std::span<const WeightedProblem> problems, const Shard& shard);

}  // namespace hone::tuner
