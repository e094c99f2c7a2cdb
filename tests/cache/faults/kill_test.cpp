#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "tests/cache/faults/campaign.h"
#include "tests/cache/faults/fast_folder.h"
#include "tests/cache/faults/fault_vfs.h"
#include "tests/cache/faults/scenario.h"
#include "tests/cache/support.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

constexpr int kSurvived = 1;
constexpr int kMoreChanges = 1'000'000;  ///< more than anything makes

/// Does `work` in a child process that dies just before its change number `change`, counted from 0. Returns whether it
/// came to that; otherwise the work was done.
bool dies_at(int change, const std::function<void()>& work) {
  const int status = status_of_child([&] {
    int changes = 0;
    const FaultVfs vfs([&](const Operation& operation) {
      if (operation.is_change() && changes++ == change) ::_exit(0);
      return SQLITE_OK;
    });
    work();
    return kSurvived;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= kSurvived) << status;
  return WEXITSTATUS(status) != kSurvived;
}

class CacheKill : public testing::Test {
 protected:
  CacheKill() { fs::create_directory(file_.parent_path()), fs::permissions(file_.parent_path(), fs::perms(0700)); }

  void publish(const Publication& publication) {
    store_.publish(publication);
    ledger_.commit(publication);
  }

  /// Kills a publication of `next` at every change that it makes; each time somebody looks, then it is done again.
  void kill_everywhere(Campaign& campaign, const Publication& next) {
    const Checkpoint before(file_.parent_path());
    Ledger ledger = ledger_;
    ledger.begin(next);
    for (int change = 0; dies_at(change, [&] { store_.publish(next); }); ++change) {
      std::string what;
      const Outcome outcome = ledger.compare(store_, Damage::none, what);
      campaign.count(outcome, what);
      if (change % 7 == 0) {
        store_.publish(next);
        Ledger done = ledger_;
        done.commit(next);
        EXPECT_EQ(done.compare(store_, Damage::none, what), Outcome::right) << what;
      }
      before.restore();
    }
    publish(next);
    std::string what;
    EXPECT_EQ(ledger_.compare(store_, Damage::none, what), Outcome::right) << what;
    EXPECT_THAT(sql(file_, "PRAGMA integrity_check"), testing::ElementsAre("ok"));
  }

  FastFolder folder_;
  fs::path file_ = folder_ / "cache" / "winners.sqlite";
  Store store_{file_};
  Ledger ledger_;
};

TEST_F(CacheKill, PublicationKilledAtAnyChangeHappensOrDoesNot) {
  Campaign campaign("killed at each write, sync, truncation, deletion or rename of a publication");
  for (int number = 0; number < scaled(18); ++number) kill_everywhere(campaign, varied_publication(number));
  for (int number = 0; number < scaled(6); ++number) {
    kill_everywhere(campaign, retuned(varied_publication(number), number));
  }
  if (scaled(1000) >= 1000) {
    EXPECT_GE(campaign.cases(), 1000);
  }
}

TEST_F(CacheKill, MigrationKilledAtAnyChangeHappensOrDoesNot) {
  Campaign campaign("killed at each change of migrating an old file");
  const Scenario& migration = scenario("the first publication into an old file");
  migration.prepare(store_, ledger_);
  kill_everywhere(campaign, migration.publications.front());
  EXPECT_GT(campaign.cases(), 20);
}

TEST(CacheKilledMaintenance, HappensOrDoesNot) {
  Campaign campaign("killed at each change of merge, import, repair, prune or snapshot");
  int turn = 0;
  for (const Scenario& scenario : maintenance_scenarios()) {
    const Trial trial(scenario);
    const Points changes(kMoreChanges, std::min(stride_of(1), 16), turn++);  // each scenario has few changes
    for (int number = 0; dies_at(changes[number], [&] { trial.act(); }); ++number) {
      std::string what;
      const Outcome outcome = trial.aftermath(what);
      campaign.count(outcome, scenario.name + ": " + what);
    }
  }
  EXPECT_GT(campaign.cases(), 20);
}

TEST_F(CacheKill, ReaderKilledWhileItUndoesAWriteLeavesItToTheNext) {
  Campaign campaign("killed at each change of undoing an interrupted publication");
  publish(varied_publication(1));
  publish(varied_publication(2));
  const Publication next = retuned(varied_publication(2), 1);
  Ledger ledger = ledger_;
  ledger.begin(next);
  const Checkpoint before(file_.parent_path());
  const Points changes(kMoreChanges, is_sanitized() ? 4 : 1);
  for (int number = 0; dies_at(changes[number], [&] { store_.publish(next); }); ++number) {
    const Checkpoint interrupted(file_.parent_path());
    const auto look = [&] { static_cast<void>(store_.find(query_of(next))); };
    for (int undone = 0; dies_at(undone, look); ++undone) {
      std::string what;
      const Outcome outcome = ledger.compare(store_, Damage::none, what);
      campaign.count(outcome, what);
      interrupted.restore();
    }
    before.restore();
  }
  EXPECT_GT(campaign.cases(), 20);
}

}  // namespace
}  // namespace hone::cache
