#include "runtime/choose/waves.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "runtime/choose/candidate_queue.h"
#include "runtime/choose/compiled.h"
#include "runtime/choose/stopping_rule.h"
#include "runtime/search/model.h"

namespace hone {
namespace {

constexpr std::size_t kSmallestWave = 16;
constexpr std::size_t kLargestWave = 32;

/// So many waves of the next problem are compiled ahead besides the first.
constexpr std::size_t kFurtherWaves = 2;

}  // namespace

std::size_t wave_size() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), kSmallestWave, kLargestWave);
}

std::size_t first_wave_size(const DeviceFacts& facts, const Problem& problem, const TuningOptions& options,
                            const SearchOrder& order) {
  const StoppingRule by_the_model(roofline_us(facts, DeviceLimits{}, problem, options.inputs), false);
  const std::vector<RankedPolicy>& ranking = order.ranking();
  if (!ranking.empty() && by_the_model.is_at_roofline(ranking.front().prediction.us())) return kCandidateGroup;
  return options.nearby.empty() ? wave_size() : wave_size() / 2;
}

std::vector<Unit> first_units(const DeviceFacts& facts, const Problem& problem, const TuningOptions& options) {
  SearchOrder order(facts, problem, options);
  const std::size_t count = first_wave_size(facts, problem, options, order) + kFurtherWaves * wave_size();
  std::vector<Unit> units;
  for (const std::size_t place : order.next(count, std::numeric_limits<double>::infinity()))
    units.push_back(unit_of(problem, order.ranking()[place].policy));
  return units;
}

}  // namespace hone
