#include "runtime/choose/waves.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include "runtime/choose/candidate_queue.h"
#include "runtime/choose/compiled.h"
#include "runtime/choose/stopping_rule.h"
#include "runtime/search/model.h"

namespace hone {
namespace {

constexpr std::size_t kSmallestWave = 16;
constexpr std::size_t kLargestWave = 32;

/// So many waves of the next problem are compiled ahead besides the first ones of all.
constexpr std::size_t kFurtherWaves = 2;

/// One part in so many of the budget is for measuring what was compiled first; where compiling took longer than it may,
/// one part in so many of that time, up to the budget. With a budget of 300 ms a session compiles 16 policies in 0.9 to
/// 2.2 s, and measured 12 to 40 of their 60 to 120 candidates in 40 to 80 ms. Of 30 problems of long rows, the best
/// grids of these policies by the model were 1.5 % behind the best of all candidates in the mean, their best grids 0.2 %
/// (H100, CUDA 13.0, 2026-11-27).
constexpr int kFirstWaveShare = 5, kCompileTimeShare = 4;

}  // namespace

std::size_t wave_size(const Device& device) {
  return std::clamp(device.parallel_compilations(), kSmallestWave, kLargestWave);
}

std::size_t first_wave_size(const Device& device, const Problem& problem, const TuningOptions& options,
                            const SearchOrder& order) {
  const StoppingRule by_the_model(roofline_us(device.facts(), DeviceLimits{}, problem, options.inputs), false);
  const std::vector<RankedPolicy>& ranking = order.ranking();
  if (!ranking.empty() && by_the_model.is_at_roofline(ranking.front().prediction.us())) return kCandidateGroup;
  return options.nearby.empty() ? wave_size(device) : wave_size(device) / 2;
}

std::chrono::milliseconds time_for_first_wave(std::chrono::milliseconds budget, double compile_ms) {
  const std::chrono::milliseconds beside_compiling(static_cast<std::int64_t>(compile_ms / kCompileTimeShare));
  return std::max(budget / kFirstWaveShare, std::min(budget, beside_compiling));
}

std::vector<Unit> first_units(const Device& device, const DeviceLimits& limits,
                              const std::vector<ComingTuning>& coming) {
  std::vector<Unit> units, further;
  for (const ComingTuning& tuning : coming) {
    SearchOrder order(device.facts(), tuning.problem, tuning.options, limits);
    const auto add = [&](std::size_t count, std::vector<Unit>& to) {
      for (const std::size_t place : order.next(count, std::numeric_limits<double>::infinity()))
        to.push_back(unit_of(tuning.problem, order.ranking()[place].policy));
    };
    add(first_wave_size(device, tuning.problem, tuning.options, order), units);
    if (&tuning == &coming.front()) add(kFurtherWaves * wave_size(device), further);
  }
  std::move(further.begin(), further.end(), std::back_inserter(units));
  return units;
}

}  // namespace hone
