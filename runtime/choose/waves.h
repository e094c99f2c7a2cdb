// How many policies a search compiles at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include <hone/device.h>
#include <hone/kernel.h>
#include <hone/problem.h>
#include <hone/tuning.h>

#include "runtime/choose/search_order.h"

namespace hone {

/// Enough policies to keep all cores busy that compile for the device, few enough to stop in time.
std::size_t wave_size(const Device& device);

/// Where the model's first choice should, by its own constants, be as fast as memory and launching allow, the first
/// group of candidates ends the search; where a neighbour was measured, what is expected is worth more, and the rest is
/// compiled while this is measured.
std::size_t first_wave_size(const Device& device, const Problem& problem, const TuningOptions& options,
                            const SearchOrder& order);

/// The time that there is for measuring what was compiled first, however late that is: a fifth of the budget, or a
/// quarter of the time that compiling took, up to the budget.
std::chrono::milliseconds time_for_first_wave(std::chrono::milliseconds budget, double compile_ms);

/// A tuning that will come.
struct ComingTuning {
  Problem problem;
  TuningOptions options;
};

/// The units that the tunings would compile first, as far as can be told before them: the first waves of all, in their
/// order, and then further ones of the first tuning.
std::vector<Unit> first_units(const Device& device, const DeviceLimits& limits,
                              const std::vector<ComingTuning>& coming);

}  // namespace hone
