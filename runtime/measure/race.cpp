#include "runtime/measure/race.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include <hone/error.h>

#include "runtime/measure/statistics.h"

namespace hone {
namespace {

/// Device events resolve about half a microsecond: a batch of 100 µs keeps that below one percent.
constexpr double kBatchUs = 100;
constexpr int kMostCallsPerSample = 64;

constexpr std::size_t kQualifyingSamples = 3;

/// A contender whose first call takes this many times the best median is not worth a second.
constexpr double kHopeless = 2;

/// A round keeps those within `keep` times the best median, at most `most`, and gives each `samples` more.
struct Round {
  double keep;
  std::size_t most;
  int samples;
};
constexpr std::array<Round, 3> kRounds{{{1.25, 48, 5}, {1.08, 16, 10}, {1.04, 8, 20}}};

void record(Contender& contender) {
  const Estimate result = estimate(contender.samples_us);
  contender.trial->median_us = result.median_us;
  contender.trial->spread_us = result.spread_us;
  contender.trial->samples = result.samples;
}

}  // namespace

void Race::run(std::vector<Contender>& contenders, const RaceLimits& limits,
               const std::function<void(int done, double best_us)>& on_measured) {
  std::vector<Contender*> field;
  double best_us = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    Contender& contender = contenders[i];
    if (i > 0 && limits.reached(limits.qualifying_deadline)) {
      contender.trial->verdict = Verdict::rejected;
      contender.trial->reason = limits.stop.stop_requested() ? "not measured: the tuning was stopped"
                                                             : "not measured: the time budget was spent";
      continue;
    }
    if (qualify(contender, best_us)) {
      field.push_back(&contender);
      best_us = std::min(best_us, contender.trial->median_us);
    }
    on_measured(static_cast<int>(i) + 1, std::isfinite(best_us) ? best_us : 0);
  }

  std::mt19937 random(static_cast<unsigned>(field.size()));
  for (const Round& round : kRounds) {
    std::sort(field.begin(), field.end(),
              [](const Contender* a, const Contender* b) { return a->trial->median_us < b->trial->median_us; });
    while (field.size() > 1 &&
           (field.size() > round.most || field.back()->trial->median_us > round.keep * field.front()->trial->median_us))
      field.pop_back();
    for (int sampled = 0; sampled < round.samples && !limits.reached(limits.deadline); ++sampled) {
      std::shuffle(field.begin(), field.end(), random);
      std::erase_if(field, [&](Contender* contender) { return !sample(*contender); });
    }
    for (Contender* contender : field) record(*contender);
  }
}

bool Race::qualify(Contender& contender, double best_us) {
  contender.batch = std::make_unique<Batch>(bench_, contender.loaded, 1);
  if (!time_call(contender)) return false;  // the first launch may load code
  const std::optional<double> once_us = time_call(contender);
  if (!once_us) return false;
  const int calls =
      static_cast<int>(std::clamp(std::ceil(kBatchUs / std::max(*once_us, 0.1)), 1.0, double{kMostCallsPerSample}));
  if (calls == 1) contender.samples_us.push_back(*once_us);
  else contender.batch = std::make_unique<Batch>(bench_, contender.loaded, calls);
  const bool is_hopeless = calls == 1 && *once_us > kHopeless * best_us;
  while (!is_hopeless && contender.samples_us.size() < kQualifyingSamples)
    if (!sample(contender)) return false;
  record(contender);
  return !is_hopeless;
}

bool Race::sample(Contender& contender) {
  const std::optional<double> us = time_call(contender);
  if (us) contender.samples_us.push_back(*us);
  return us.has_value();
}

std::optional<double> Race::time_call(Contender& contender) {
  try {
    return contender.batch->time_us();
  } catch (const Error& error) {
    contender.trial->verdict = Verdict::failed;
    contender.trial->reason = error.what();
    return std::nullopt;
  }
}

}  // namespace hone
