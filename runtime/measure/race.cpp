#include "runtime/measure/race.h"

#include <algorithm>
#include <cmath>

#include <hone/error.h>

#include "runtime/measure/statistics.h"

namespace hone {
namespace {

/// Device events resolve about half a microsecond: a batch of 100 µs keeps that below one percent.
constexpr double kBatchUs = 100;
constexpr double kEventResolutionUs = 0.5;
constexpr int kMostCallsPerSample = 128;

constexpr std::size_t kQualifyingSamples = EliminationRules{}.first_samples;

constexpr double kLeastUs = 1e-3;  ///< no call takes less; the host's clock may show 0

/// A single call this short is mostly events and launch; how long it takes among others shows only in a batch.
constexpr double kShortCallUs = 20;

/// Contenders are sampled in turn within groups of this many.
constexpr std::size_t kGroup = 16;

/// A contender of which two calls take this many times the best median is not worth a third.
constexpr double kHopeless = 2;

/// Batches of a contender this far behind are given up: a captured graph takes memory.
constexpr double kFarBehind = 1.5;

/// Samples are thrown away as long as they are no more than a few, or this share of those kept.
constexpr int kFewDiscarded = 8;
constexpr int kKeptPerDiscarded = 4;

int calls_for(double call_us) {
  return static_cast<int>(std::clamp(std::ceil(kBatchUs / std::max(call_us, 0.1)), 1.0, double{kMostCallsPerSample}));
}

}  // namespace

void Race::qualify(std::span<Contender* const> contenders, const RaceLimits& limits,
                   const std::function<void(int done)>& on_measured) {
  int done = 0;
  for (std::size_t begin = 0; begin < contenders.size(); begin += kGroup) {
    std::vector<Contender*> group;
    for (Contender* contender : contenders.subspan(begin, std::min(kGroup, contenders.size() - begin))) {
      if (has_begun_ && limits.reached()) {
        contender->trial.verdict = Verdict::rejected;
        using enum ReasonCode;
        contender->trial.reason = limits.stop.stop_requested() ? not_measured_stopped : not_measured_budget;
      } else if (prepare(*contender)) {
        group.push_back(contender);
      }
      has_begun_ = true;
      on_measured(++done);
    }
    for (std::size_t round = 0; round < kQualifyingSamples; ++round) {
      std::shuffle(group.begin(), group.end(), random_);
      std::erase_if(group, [&](Contender* contender) { return !sample(*contender); });
    }
    for (Contender* contender : group) record(*contender);
    field_.insert(field_.end(), group.begin(), group.end());
    for (Contender* contender : field_)
      if (contender->trial.median_us > kFarBehind * best_us_) contender->batch.reset();
  }
}

std::vector<Contender*> Race::finish(const RaceLimits& limits) {
  std::vector<Racer*> racers;
  for (Contender* contender : field_) racers.push_back(&contender->racer);
  const EliminationRules rules{.seed = seed_};
  const std::vector<std::size_t> tied = eliminate(
      racers, rules,
      [&](std::size_t racer) {
        set_calls(*field_[racer], calls_);
        return sample(*field_[racer]);
      },
      [&] { return !limits.reached(); });
  for (Contender* contender : field_)
    if (contender->trial.verdict == Verdict::ok) record(*contender);
  std::vector<Contender*> result;
  for (std::size_t racer : tied) result.push_back(field_[racer]);
  if (result.empty()) return result;
  for (Contender* contender : field_)
    if (contender->trial.verdict == Verdict::ok) put_beside(*contender, *result.front());
  return result;
}

void Race::put_beside(Contender& contender, const Contender& leader) {
  const std::vector<double>& samples_us = contender.racer.samples_us;
  if (samples_us.size() >= leader.racer.samples_us.size()) return;
  const std::size_t first = samples_us.size() > kQualifyingSamples ? kQualifyingSamples : 0;
  std::vector<double> ratios;
  for (std::size_t i = first; i < samples_us.size(); ++i)
    ratios.push_back(samples_us[i] / std::max(leader.racer.samples_us[i], kLeastUs));
  contender.trial.median_us = leader.trial.median_us * median(ratios);
}

bool Race::prepare(Contender& contender) {
  set_calls(contender, 1);
  if (!time_call(contender)) return false;  // the first launch may load code
  std::optional<double> once_us = time_call(contender);
  if (once_us && *once_us > kHopeless * best_us_) {  // it, or something that came in between
    const std::optional<double> again_us = time_call(contender);
    once_us = again_us ? std::min(*once_us, *again_us) : again_us;
  }
  if (!once_us) return false;
  if (calls_for(*once_us) == 1 && *once_us > kHopeless * best_us_) {
    contender.racer.samples_us.push_back(*once_us);
    record(contender);
    return false;
  }
  std::optional<double> us = once_us;
  if (*once_us < kShortCallUs) {
    set_calls(contender, calls_for(*once_us));
    us = time_call(contender);
    if (!us) return false;
  }
  set_calls(contender, calls_beside_others(*us));
  best_us_ = std::min(best_us_, *once_us);
  return true;
}

int Race::calls_beside_others(double us) {
  if (us * kFarBehind < pace_us_) {
    pace_us_ = us;
    calls_ = calls_for(us);
  }
  return us > pace_us_ * kFarBehind ? calls_for(us) : calls_;
}

bool Race::sample(Contender& contender) {
  set_calls(contender, contender.calls_per_sample);
  while (true) {
    const std::optional<double> us = time_call(contender);
    if (!us) return false;
    const DeviceCondition condition = bench_.device.condition();
    const bool is_fair = !condition.is_throttled && !condition.is_shared;
    if (is_fair || discarded_ >= kFewDiscarded + taken_ / kKeptPerDiscarded) {
      contender.racer.samples_us.push_back(*us);
      ++taken_;
      return true;
    }
    ++discarded_;
  }
}

std::optional<double> Race::time_call(Contender& contender) {
  try {
    if (bench_.on_run) bench_.on_run(contender.trial.candidate);
    // Each sample in another workspace, which for rivals of as many samples is the same.
    return contender.batch->time_us(contender.racer.samples_us.size());
  } catch (const Error& error) {
    contender.trial.verdict = Verdict::failed;
    contender.trial.reason = {ReasonCode::does_not_run, error.what()};
    bench_.require_alive(contender.trial.candidate, error);  // waits for what the batch has launched
    contender.batch.reset();
    return std::nullopt;
  }
}

void Race::set_calls(Contender& contender, int calls) const {
  if (contender.batch && contender.calls_per_sample == calls) return;
  contender.calls_per_sample = calls;
  contender.racer.resolution_us = kEventResolutionUs / calls;
  contender.batch = std::make_unique<Batch>(bench_, contender.loaded, calls);
}

void Race::record(Contender& contender) {
  const Estimate result = estimate(contender.racer.samples_us);
  contender.trial.median_us = result.median_us;
  contender.trial.spread_us = result.spread_us;
  contender.trial.samples = result.samples;
  best_us_ = std::min(best_us_, result.median_us);
}

}  // namespace hone
