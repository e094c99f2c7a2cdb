// The energy of calls, by the counter of the whole device.
#pragma once

#include <span>
#include <stop_token>
#include <vector>

#include "runtime/measure/race.h"

namespace hone {

/// Measures the energy of the fastest few of `field`, those that took at most a quarter longer than the fastest and six
/// at most, and writes it into their trials: a slower one would have to make up for idle power, too. Each is sampled
/// three times, in turn: launched back to back for at least half a second, from one step of the counter to another,
/// since a GPU's counter moves every 20 to 100 ms. Returns those that were measured, the best first: those whose
/// interval (median ± half of the range) meets that of the least energy tie, and are in the order of their times; the
/// others follow. One that fails is marked so and left out. Launches of graph problems are enqueued one by one, too.
/// Throws unsupported where the counter does not move.
std::vector<Contender*> rank_by_energy(const Bench& bench, std::span<Contender* const> field, std::stop_token stop);

}  // namespace hone
