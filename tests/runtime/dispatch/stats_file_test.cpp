// The file with a session's counters.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/runtime/support/session_fixture.h"

namespace hone {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class StatsFileTest : public FakeSessionTest {
 protected:
  SessionOptions options_with_stats(const fs::path& folder) const {
    SessionOptions with = options();
    with.stats_folder = folder;
    return with;
  }

  std::string text() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(stats_ / "."))
      if (entry.path().extension() == ".json") {
        std::ifstream file(entry.path());
        return {std::istreambuf_iterator<char>(file), {}};
      }
    return "";
  }

  TempFolder stats_;
};

TEST_F(StatsFileTest, FollowsTheCountersAndEndsWithTheSession) {
  {
    Session session(device_, options_with_stats(stats_ / "."));
    EXPECT_THAT(text(), HasSubstr("\"tunings\":0"));
    launch(session);
    EXPECT_THAT(text(), HasSubstr("\"tunings\":1"));
    EXPECT_THAT(text(), HasSubstr("\"shipped\":0"));
    EXPECT_THAT(text(), HasSubstr("\"process\":" + std::to_string(getpid())));
  }
  EXPECT_EQ(text(), "");
}

TEST_F(StatsFileTest, EndsWithTheProcessOfASessionThatIsNotDestroyed) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto* const session = new Session(device_, options_with_stats(stats_ / "."));
    launch(*session);
    std::exit(text().empty() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "there was no file, or the process crashed";
  EXPECT_EQ(text(), "");
}

TEST_F(StatsFileTest, AHitWritesNothing) {
  Session session(device_, options_with_stats(stats_ / "."));
  launch(session);
  for (const fs::directory_entry& entry : fs::directory_iterator(stats_ / ".")) fs::remove(entry.path());
  launch(session);
  EXPECT_EQ(text(), "");
}

TEST_F(StatsFileTest, AFolderThatIsNotThereFailsNoCall) {
  Session session(device_, options_with_stats(stats_ / "missing"));
  EXPECT_EQ(launch(session).source, ChoiceSource::tuned);
}

TEST_F(StatsFileTest, AFolderThatCannotBeWrittenToIsReportedOnce) {
  std::ofstream(stats_ / "file") << "text";
  for (const char* name : {"missing", "file"}) {
    std::vector<std::string> reports;
    SessionOptions with = options_with_stats(stats_ / name);
    with.report_cache_failure = [&](std::string_view message) { reports.emplace_back(message); };
    Session session(device_, with);
    launch(session);
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_THAT(reports[0], HasSubstr((stats_ / name).string()));
  }
}

TEST_F(StatsFileTest, WhatIsPlantedUnderItsNameIsNotFollowed) {
  std::string planted;
  {
    Session session(device_, options_with_stats(stats_ / "."));
    for (const fs::directory_entry& entry : fs::directory_iterator(stats_ / ".")) planted = entry.path();
    const fs::path victim = stats_ / "victim";
    std::ofstream(victim) << "precious";
    fs::remove(planted);
    fs::create_symlink(victim, planted);
    fs::create_symlink(victim, planted + ".partial");
    launch(session);
    std::ifstream file(victim);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "precious");
    EXPECT_FALSE(fs::is_symlink(planted));
  }
}

TEST_F(StatsFileTest, AForkedChildLeavesItAlone) {
  auto session = std::make_unique<Session>(device_, options_with_stats(stats_ / "."));
  const pid_t child = fork();
  if (child == 0) {
    session.reset();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_THAT(text(), HasSubstr("\"session\":"));
}

}  // namespace
}  // namespace hone
