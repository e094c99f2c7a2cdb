#include "runtime/measure/energy.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <optional>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/measure/statistics.h"

namespace hone {
namespace {

constexpr std::size_t kMostCandidates = 6;
constexpr double kMostBehindByTime = 1.25;
constexpr int kEnergySamples = 3;
constexpr std::chrono::milliseconds kSampleTime{500};

/// A counter that stands still for so long under load does not count.
constexpr std::chrono::seconds kCounterPatience{3};

/// The counter is read after each batch: so seldom that the device hardly ever idles, and so often that a step of the
/// counter is seen soon.
constexpr double kLoadUs = 10000;
constexpr double kMostCallsOfALoad = 10000;

/// Launches one candidate back to back, and knows the counter between two batches.
class Load {
 public:
  Load(const Bench& bench, const Contender& contender)
      : bench_(bench),
        contender_(contender),
        calls_(static_cast<int>(
            std::clamp(std::ceil(kLoadUs / std::max(contender.trial.median_us, 0.1)), 1.0, kMostCallsOfALoad))) {}

  /// The counter when it has moved; nullopt: it does not. Adds the calls until then.
  std::optional<double> run_to_next_step(long& calls) {
    const auto end = Clock::now() + kCounterPatience;
    const double before = bench_.device.energy().joules;
    while (Clock::now() < end) {
      if (bench_.on_run) bench_.on_run(contender_.trial.candidate);
      void* const workspace = bench_.workspaces.of_turn(turn_++);
      for (int call = 0; call < calls_; ++call)
        contender_.loaded.enqueue(bench_.device, bench_.problem, bench_.workload.next(), workspace, bench_.stream);
      bench_.device.synchronize(bench_.stream);
      calls += calls_;
      if (const double now = bench_.device.energy().joules; now != before) return now;
    }
    return std::nullopt;
  }

 private:
  const Bench& bench_;
  const Contender& contender_;
  const int calls_;
  std::size_t turn_ = 0;
};

std::optional<double> sample_uj(const Bench& bench, const Contender& contender) {
  Load load(bench, contender);
  long calls = 0;
  const std::optional<double> first = load.run_to_next_step(calls);
  const auto start = Clock::now();
  calls = 0;
  std::optional<double> last = first;
  while (last && Clock::now() - start < kSampleTime) last = load.run_to_next_step(calls);
  return last ? std::optional((*last - *first) * 1e6 / static_cast<double>(calls)) : std::nullopt;
}

struct Measured {
  Contender* contender;
  std::vector<double> samples_uj = {};
};

/// False where it failed; its trial then says why.
bool sample(const Bench& bench, Measured& measured) {
  std::optional<double> uj;
  try {
    uj = sample_uj(bench, *measured.contender);
  } catch (const Error& error) {
    Trial& trial = measured.contender->trial;
    trial.verdict = Verdict::failed;
    trial.reason = {ReasonCode::does_not_run, error.what()};
    bench.require_alive(trial.candidate, error);
    return false;
  }
  if (!uj)
    throw Error(ErrorCode::unsupported,
                fmt::format("the energy counter of {} has not moved for {} s of work; tune by time",
                            bench.device.name(), kCounterPatience.count()));
  measured.samples_uj.push_back(*uj);
  return true;
}

}  // namespace

std::vector<Contender*> rank_by_energy(const Bench& bench, std::span<Contender* const> field, std::stop_token stop) {
  std::vector<Measured> rivals;
  for (Contender* const contender : field)
    if (contender->trial.verdict == Verdict::ok && contender->trial.samples > 0) rivals.push_back({contender});
  const auto us = [](const Measured& measured) { return measured.contender->trial.median_us; };
  std::stable_sort(rivals.begin(), rivals.end(), [&](const Measured& a, const Measured& b) { return us(a) < us(b); });
  const double most_us = rivals.empty() ? 0 : kMostBehindByTime * us(rivals.front());
  std::erase_if(rivals, [&](const Measured& rival) { return us(rival) > most_us; });
  if (rivals.size() > kMostCandidates) rivals.resize(kMostCandidates);
  for (int round = 0; round < kEnergySamples; ++round)
    std::erase_if(rivals, [&](Measured& rival) { return stop.stop_requested() || !sample(bench, rival); });

  std::vector<Contender*> ranked;
  for (Measured& rival : rivals) {
    const auto [least, most] = std::minmax_element(rival.samples_uj.begin(), rival.samples_uj.end());
    rival.contender->trial.energy_uj = median(rival.samples_uj);
    rival.contender->trial.energy_spread_uj = (*most - *least) / 2;
    ranked.push_back(rival.contender);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Contender* a, const Contender* b) { return a->trial.energy_uj < b->trial.energy_uj; });
  if (ranked.empty()) return ranked;
  const auto ties = [&best = ranked.front()->trial](const Contender* contender) {
    return contender->trial.energy_uj - contender->trial.energy_spread_uj <= best.energy_uj + best.energy_spread_uj;
  };
  const auto end_of_tie = std::stable_partition(ranked.begin(), ranked.end(), ties);
  std::stable_sort(ranked.begin(), end_of_tie,
                   [](const Contender* a, const Contender* b) { return a->trial.median_us < b->trial.median_us; });
  return ranked;
}

}  // namespace hone
