// Which files a session reads and writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <hone/error.h>

#include "cache/store.h"
#include "tests/runtime/support/session_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

class SessionLayersTest : public FakeSessionTest {
 protected:
  void SetUp() override {
    FakeSessionTest::SetUp();
    Session(device_, options()).prepare(family_.problem(kSize));
  }

  const std::filesystem::path file_ = folder_ / "cache.sqlite";
};

TEST_F(SessionLayersTest, ASystemCacheServesAndIsNeverWritten) {
  SessionOptions shipped = options();
  shipped.cache_path = folder_ / "own.sqlite";
  shipped.system_caches = {folder_ / "none.sqlite", file_};
  const auto before = std::filesystem::last_write_time(file_);
  {
    Session session(device_, shipped);
    EXPECT_EQ(launch(session).source, ChoiceSource::cache);
    EXPECT_EQ(launch(session, 77777).source, ChoiceSource::tuned);
  }
  EXPECT_EQ(std::filesystem::last_write_time(file_), before);
  EXPECT_EQ(cache::Store(shipped.cache_path).winners().size(), 1u);
}

TEST_F(SessionLayersTest, AReadOnlyCacheIsNotWritten) {
  SessionOptions read_only = options();
  read_only.cache_read_only = true;
  const auto before = std::filesystem::last_write_time(file_);
  {
    Session session(device_, read_only);
    EXPECT_EQ(launch(session).source, ChoiceSource::cache);
    EXPECT_EQ(launch(session, 77777).source, ChoiceSource::tuned);
    EXPECT_EQ(session.counters().cache_failures, 0u);
  }
  EXPECT_EQ(std::filesystem::last_write_time(file_), before);
}

TEST_F(SessionLayersTest, WithoutStoredBinariesTheWinnerIsCompiled) {
  SessionOptions careful = options();
  careful.load_binaries = false;
  std::filesystem::permissions(file_, std::filesystem::perms(0666));  // somebody else's code may be in it
  const auto device = std::make_shared<FakeDevice>();
  Session session(device, careful);
  EXPECT_EQ(launch(session).source, ChoiceSource::cache);
  EXPECT_EQ(session.counters().compiles, 1u);
  EXPECT_EQ(session.counters().tunings, 0u);
}

TEST_F(SessionLayersTest, WithoutStoredBinariesAndCompilerThereIsNoHit) {
  SessionOptions careful = options(MissPolicy::error);
  careful.load_binaries = false;
  const auto bare = std::make_shared<FakeDevice>();
  bare->compiler = "";
  EXPECT_THROW(Session(bare, careful).prepare(family_.problem(kSize)), Error);
}

TEST_F(SessionLayersTest, AFileOthersMayWriteRunsNoCodeAndIsReportedOnce) {
  std::filesystem::permissions(file_, std::filesystem::perms(0666));
  std::vector<std::string> reports;
  SessionOptions watched = options();
  watched.report_cache_failure = [&](std::string_view message) { reports.emplace_back(message); };
  Session session(device_, watched);
  EXPECT_EQ(launch(session).source, ChoiceSource::tuned);
  EXPECT_EQ(launch(session, 77777).source, ChoiceSource::tuned);
  EXPECT_EQ(session.counters().caches_left_out, 1u);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_THAT(reports[0], Names(file_.native()));
  EXPECT_THAT(reports[0], Names("not trusted"));
}

TEST_F(SessionLayersTest, ASystemFileThatCannotBeReadLosesNoWinner) {
  const std::filesystem::path junk = folder_ / "junk.sqlite";
  std::ofstream(junk) << "somebody's letter";
  SessionOptions mixed = options();
  mixed.system_caches = {junk};
  mixed.cache_path = folder_ / "own.sqlite";
  Session session(device_, mixed);
  session.tune(family_.problem(kSize), {.budget = std::chrono::minutes(1)});
  EXPECT_GE(session.counters().cache_failures, 1u);
  EXPECT_EQ(session.counters().not_stored, 0u);

  SessionOptions bad = options();
  bad.cache_path = junk;
  Session without(device_, bad);
  without.tune(family_.problem(kSize), {.budget = std::chrono::minutes(1)});
  EXPECT_EQ(without.counters().not_stored, 1u);
}

TEST_F(SessionLayersTest, AnotherDriverIsAStaleHitAndNoted) {
  DeviceFacts facts = FakeDevice::default_facts();
  facts.driver = "2.0";
  Session session(std::make_shared<FakeDevice>(facts), options());
  EXPECT_EQ(launch(session).source, ChoiceSource::cache);
  EXPECT_EQ(session.counters().stale_hits, 1u);
  EXPECT_EQ(session.counters().cache_hits, 1u);
}

}  // namespace
}  // namespace hone
