// Campaigns whose candidates crash, hang, corrupt the context or take the device with them.
#include <string_view>

#include <fmt/format.h>

#include <hone/session.h>

#include "tests/support/names.h"
#include "tests/tuner/campaign/campaign_fixture.h"

namespace hone::tuner {
namespace {

using namespace std::chrono_literals;
using test::Names;

class FaultsTest : public CampaignTest {
 protected:
  /// `threads` a block of the launches that it happens to; 0: of all.
  CampaignOptions with_fault(std::string_view kind, int times, int threads = 128) const {
    std::filesystem::create_directories(folder_ / "faults");
    setenv("HONE_TEST_FAULT", fmt::format("{} {} {} {}", kind, threads, times, (folder_ / "faults").string()).c_str(),
           1);
    CampaignOptions faulty = options();
    faulty.worker = {HONE_FAULTY_WORKER};
    return faulty;
  }
  ~FaultsTest() override { unsetenv("HONE_TEST_FAULT"); }

  /// The reasons of the trials that failed.
  std::vector<std::string> failures() const {
    std::vector<std::string> reasons;
    const cache::Store store(cache_);
    for (const cache::StoredWinner& winner : store.winners()) {
      const auto tuning = store.tuning(winner.id);
      if (!tuning) continue;
      for (const cache::TrialRecord& trial : tuning->trials)
        if (trial.verdict == "failed") reasons.push_back(trial.candidate.policy + ": " + trial.reason);
    }
    return reasons;
  }
};

TEST_F(FaultsTest, ACandidateThatKillsItsProcessIsRecordedAndTheCampaignGoesOn) {
  CampaignOptions faulty = with_fault("crash", 1);
  faulty.budget = 10s;  // each of two processes compiles for itself, on a machine that may be busy
  const CampaignResult result = run({sum_of(4096), sum_of(16384)}, faulty);
  ASSERT_EQ(result.items.size(), 2U);
  EXPECT_EQ(result.items[0].outcome, Outcome::tuned) << result.items[0].reason;
  EXPECT_EQ(result.items[1].outcome, Outcome::tuned) << result.items[1].reason;
  ASSERT_EQ(result.items[0].died.size() + result.items[1].died.size(), 1U);
  EXPECT_THAT(failures(), ::testing::Contains(Names("process", "killed", "11")));
  EXPECT_THAT(failures(), ::testing::Contains(Names("block_threads=128")));
  EXPECT_EQ(recorder_.begun, 2) << "the same problem is not started again";
}

TEST_F(FaultsTest, ACandidateThatHangsIsKilledAfterThePatience) {
  CampaignOptions faulty = with_fault("hang", 1);
  faulty.patience = 2s;
  const CampaignResult result = run({sum_of(4096)}, faulty);
  EXPECT_EQ(result.items[0].outcome, Outcome::tuned) << result.items[0].reason;
  // On a busy machine another candidate may be silent for as long.
  EXPECT_THAT(result.items[0].died, ::testing::Each(Names("hung", "no sign", "2.0 s")));
  EXPECT_THAT(failures(), ::testing::Contains(Names("block_threads=128", "hung", "no sign")));
  EXPECT_GE(result.times.hung_ms, 2000);
}

TEST_F(FaultsTest, ACorruptContextIsBlamedOnTheCandidateThatRanLast) {
  const CampaignResult result = run({sum_of(4096)}, with_fault("lose", 1));
  EXPECT_NE(result.items[0].outcome, Outcome::failed) << result.items[0].reason;
  ASSERT_EQ(result.items[0].died.size(), 1U);
  EXPECT_THAT(result.items[0].died[0], Names("not work", "after"));
  EXPECT_THAT(result.items[0].died[0], Names("block_threads=128"));
}

TEST_F(FaultsTest, AProblemThatKillsEveryProcessIsGivenUp) {
  const CampaignResult result = run({sum_of(4096), sum_of(16384)}, with_fault("crash", 8, 0));
  EXPECT_EQ(result.items[0].outcome, Outcome::failed);
  EXPECT_THAT(result.items[0].reason, Names("8 candidates", "hung"));
  EXPECT_EQ(result.items[0].died.size(), 8U);
  EXPECT_NE(result.items[1].outcome, Outcome::failed) << result.items[1].reason;
}

TEST_F(FaultsTest, ADeviceThatDisappearsEndsTheCampaignWithEverythingFinishedKept) {
  run({sum_of(1024)}, options());
  const CampaignResult result = run({sum_of(1024), sum_of(4096), sum_of(16384)}, with_fault("vanish", 1));
  EXPECT_THAT(result.device_failure, Names("no device", "'host'"));
  EXPECT_EQ(result.items[0].outcome, Outcome::kept);
  EXPECT_EQ(result.items[1].outcome, Outcome::not_reached);
  EXPECT_EQ(result.items[2].outcome, Outcome::not_reached);
  EXPECT_EQ(tunings().size(), 1U);
}

}  // namespace
}  // namespace hone::tuner
