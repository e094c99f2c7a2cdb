#include "tuner/campaign.h"

#include <gmock/gmock.h>
#include <hone/tuned_reduce.h>

#include "tests/tuner/support.h"

namespace hone::tuner {
namespace {

using namespace std::chrono_literals;
using testing::TemporaryFolder;

/// Counts what it is told, and stops the campaign after some problems.
class Recorder final : public CampaignObserver {
 public:
  void planned(std::size_t tune, std::size_t kept) override {
    to_tune = tune;
    already = kept;
  }
  void started(const Problem&) override { ++begun; }
  void progressed(const TuningProgress&) override {
    if (begun > stop_after) stop.request_stop();
  }
  void finished(const CampaignItem&) override { ++ended; }

  std::size_t to_tune = 0, already = 0;
  int begun = 0, ended = 0;
  int stop_after = 1000;
  std::stop_source stop;
};

class CampaignTest : public ::testing::Test {
 protected:
  CampaignResult run(std::vector<Problem> problems, CampaignOptions options) {
    SessionOptions session_options;
    session_options.cache_path = folder_ / "cache.sqlite";
    session_options.on_miss = MissPolicy::error;
    Session session(Device::open("host"), session_options);
    return run_campaign(session, problems, options, recorder_);
  }

  static std::vector<Problem> three_sizes() {
    return {reduce_problem(ReduceOp::sum, DType::f32, 1024), reduce_problem(ReduceOp::sum, DType::f32, 4096),
            reduce_problem(ReduceOp::sum, DType::f32, 16384)};
  }

  static CampaignOptions options() {
    CampaignOptions options;
    options.budget = 300ms;
    return options;
  }

  TemporaryFolder folder_;
  Recorder recorder_;
};

TEST_F(CampaignTest, TunesWhatHasNoWinnerAndKeepsWhatHas) {
  const CampaignResult first = run({three_sizes()[1]}, options());
  ASSERT_EQ(first.items.size(), 1U);
  EXPECT_EQ(first.items[0].outcome, Outcome::tuned) << first.items[0].reason;
  EXPECT_GT(first.items[0].median_us, 0);
  EXPECT_GT(first.items[0].default_us, 0);
  EXPECT_EQ(first.cache_failure, "");

  const CampaignResult second = run(three_sizes(), options());
  EXPECT_EQ(recorder_.to_tune, 2U);
  EXPECT_EQ(recorder_.already, 1U);
  EXPECT_EQ(second.items[0].outcome, Outcome::tuned);
  EXPECT_EQ(second.items[1].outcome, Outcome::kept);
  EXPECT_EQ(second.items[1].candidate, first.items[0].candidate);
  EXPECT_EQ(second.items[1].median_us, first.items[0].median_us);
}

TEST_F(CampaignTest, AgainTunesWhatHasAWinner) {
  run({three_sizes()[0]}, options());
  CampaignOptions again = options();
  again.again = true;
  EXPECT_EQ(run({three_sizes()[0]}, again).items[0].outcome, Outcome::tuned);
}

TEST_F(CampaignTest, AStopKeepsWhatIsFinished) {
  CampaignOptions stopping = options();
  stopping.stop = recorder_.stop.get_token();
  recorder_.stop_after = 1;
  const CampaignResult result = run(three_sizes(), stopping);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.items[0].outcome, Outcome::tuned);
  EXPECT_EQ(result.items[1].outcome, Outcome::interrupted);
  EXPECT_EQ(result.items[2].outcome, Outcome::not_reached);

  recorder_.stop_after = 1000;
  EXPECT_EQ(run(three_sizes(), options()).items[0].outcome, Outcome::kept);
}

TEST_F(CampaignTest, TheTotalBudgetEndsIt) {
  CampaignOptions limited = options();
  limited.total_budget = 1000ms;
  int calls = 0;
  limited.now = [&] { return std::chrono::steady_clock::time_point{} + (calls++ < 2 ? 0ms : 2000ms); };
  const CampaignResult result = run(three_sizes(), limited);
  EXPECT_TRUE(result.out_of_budget);
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(result.items[0].outcome, Outcome::tuned);
  EXPECT_EQ(result.items[1].outcome, Outcome::not_reached);
}

TEST_F(CampaignTest, WinnersThatCannotBeStoredEndIt) {
  SessionOptions session_options;
  session_options.cache_path = folder_.path();  // a directory
  session_options.on_miss = MissPolicy::error;
  Session session(Device::open("host"), session_options);
  const CampaignResult result = run_campaign(session, three_sizes(), options(), recorder_);
  EXPECT_NE(result.cache_failure, "");
  EXPECT_EQ(recorder_.begun, 1);
  EXPECT_EQ(result.items[1].outcome, Outcome::not_reached);
}

TEST(OnePerSizeClass, SizesThatShareAWinnerAreTunedOnce) {
  const std::vector<Problem> problems{
      reduce_problem(ReduceOp::sum, DType::f32, 1000),    reduce_problem(ReduceOp::sum, DType::f32, 1024),
      reduce_problem(ReduceOp::max, DType::f32, 1024),    reduce_problem(ReduceOp::sum, DType::f64, 1024),
      reduce_problem(ReduceOp::sum, DType::f32, 1024, 4), reduce_problem(ReduceOp::sum, DType::f32, 2048)};
  const std::vector<Problem> kept = one_per_size_class(problems);
  ASSERT_EQ(kept.size(), 5U);
  EXPECT_EQ(kept[0].extents[0], 1000);
  EXPECT_EQ(kept[4].extents[0], 2048);
}

}  // namespace
}  // namespace hone::tuner
