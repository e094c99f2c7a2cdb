// CampaignTest: campaigns on the host device with a cache of their own, and a recorder of what they tell.
#pragma once

#include <gmock/gmock.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include <hone/tuned_reduce.h>

#include "cache/store.h"
#include "tests/support/long_test.h"
#include "tests/tuner/support.h"
#include "tuner/campaign/campaign.h"
#include "tuner/campaign/worker.h"

namespace hone::tuner {

/// Counts what it is told, and stops the campaign after some problems.
class Recorder final : public CampaignObserver {
 public:
  void planned(const std::vector<CampaignDevice>&, std::size_t tune, std::size_t kept) override {
    to_tune = tune;
    already = kept;
  }
  void started(std::size_t, const Problem& problem) override {
    ++begun;
    order.push_back(problem);
  }
  void consolidating(std::size_t, const Problem&) override { ++sweeps_begun; }
  void progressed(std::size_t, const TuningProgress&) override {
    if (begun > stop_after) stop.request_stop();
  }
  void finished(const CampaignItem& item, std::size_t) override {
    if (item.outcome != Outcome::kept) ++ended;
  }
  void consolidated(const SweepResult&, std::size_t) override { ++sweeps_ended; }
  void warned(const std::string& what) override { warnings.push_back(what); }

  std::size_t to_tune = 0, already = 0;
  int begun = 0, ended = 0, sweeps_begun = 0, sweeps_ended = 0;
  int stop_after = 1000;
  std::vector<Problem> order;
  std::vector<std::string> warnings;
  std::stop_source stop;
};

class CampaignTest : public test::LongTest {
 protected:
  CampaignResult run(const std::vector<Problem>& problems, CampaignOptions options) {
    std::vector<WeightedProblem> weighted;
    for (const Problem& problem : problems) weighted.push_back({.problem = problem});
    return run_campaign(weighted, options, recorder_);
  }

  static Problem sum_of(std::int64_t n) { return reduce_problem(ReduceOp::sum, DType::f32, n); }
  static std::vector<Problem> three_sizes() { return {sum_of(1024), sum_of(4096), sum_of(16384)}; }

  CampaignOptions options() const {
    CampaignOptions options;
    options.budget = std::chrono::milliseconds(3000);  // enough to compare something on a machine that is busy
    options.session.cache_path = cache_;
    options.worker = {HONE_COMMAND, std::string(kWorkerCommand)};
    return options;
  }

  /// Every tuned winner's tuned size and the time of its tuning.
  std::vector<std::pair<std::int64_t, std::int64_t>> tunings() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    const cache::Store store(cache_);
    for (const cache::StoredWinner& winner : store.winners())
      if (const auto tuning = store.tuning(winner.id); winner.winner.tuned && tuning)
        found.emplace_back(winner.winner.tuned_extents[0], tuning->started_at);
    return found;
  }

  testing::TemporaryFolder folder_;
  std::filesystem::path cache_ = folder_ / "cache.sqlite";
  Recorder recorder_;
};

}  // namespace hone::tuner
