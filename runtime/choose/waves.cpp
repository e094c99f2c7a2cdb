#include "runtime/choose/waves.h"

#include <algorithm>
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
