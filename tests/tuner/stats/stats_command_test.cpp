// hone stats: the files of sessions that live, and those of processes that are gone.
#include <gmock/gmock.h>
#include <hone/device.h>
#include <hone/session.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cache/process.h"
#include "tests/support/names.h"
#include "tests/tuner/support.h"

namespace hone::tuner {
namespace {

using nlohmann::json;
using test::Names;
using testing::CommandRun;
using testing::run_hone;
using testing::TemporaryFolder;
using testing::write_file;

json sessions_in(const std::filesystem::path& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> args{"stats", "--folder", folder.string(), "--json"};
  args.insert(args.end(), more.begin(), more.end());
  const CommandRun run = run_hone(args);
  EXPECT_EQ(run.code, 0) << run.err;
  return json::parse(run.out).at("sessions");
}

TEST(Stats, AreThoseOfSessionsThatLive) {
  const TemporaryFolder folder;
  EXPECT_TRUE(sessions_in(folder.path()).empty());
  {
    const Session session(Device::open("host"), {.cache_path = {}, .stats_folder = folder.path()});
    const json sessions = sessions_in(folder.path(), {std::to_string(getpid())});
    ASSERT_EQ(sessions.size(), 1U);
    EXPECT_EQ(sessions[0].at("process"), getpid());
    EXPECT_EQ(sessions[0].at("device"), "host");
    EXPECT_EQ(sessions[0].at("counters").at("tunings"), 0);
    EXPECT_EQ(sessions[0].at("counters").at("last_cache_failure"), "");
    const CommandRun table = run_hone({"stats", "--folder", folder.path().string()});
    EXPECT_THAT(table.out, Names("process", "shipped", "refused", std::to_string(getpid()), "host"));
  }
  EXPECT_TRUE(sessions_in(folder.path()).empty());
}

TEST(Stats, OfProcessesThatAreGoneAreLeftOut) {
  const TemporaryFolder folder;
  // No process has a number beyond the kernel's limit, 2^22.
  write_file(folder / "hone-4194305-1.json", R"({"process":4194305,"session":1,"counters":{}})");
  write_file(folder / "hone-1-1.json", "damaged");
  write_file(folder / "hone-1-2.json", R"({"process":"x"})");
  EXPECT_TRUE(sessions_in(folder.path()).empty());
}

TEST(Stats, OfProcessesThatHaveEndedAreRemoved) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    write_file(folder / "hone-1-1.json", json{{"process", 1}, {"identity", cache::this_process()}, {"session", 1},
                                              {"counters", json::object()}}.dump());
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  write_file(folder / "hone-1-2.json", R"({"process":1,"identity":"another machine","session":2,"counters":{}})");
  EXPECT_EQ(sessions_in(folder.path()).size(), 1U) << "process 1 of this machine runs, and the other may";
  EXPECT_FALSE(std::filesystem::exists(folder / "hone-1-1.json"));
  EXPECT_TRUE(std::filesystem::exists(folder / "hone-1-2.json"));
}

TEST(Stats, SayWhatIsMissing) {
  const CommandRun without_folder = run_hone({"stats"});
  EXPECT_EQ(without_folder.code, 2);
  EXPECT_THAT(without_folder.err, Names("HONE_STATS", "--folder"));
  const TemporaryFolder folder;
  EXPECT_EQ(run_hone({"stats", "--folder", (folder / "missing").string()}).code, 4);
  const CommandRun other = run_hone({"stats", "4194305", "--folder", folder.path().string()});
  EXPECT_EQ(other.code, 4);
  EXPECT_THAT(other.err, Names("4194305"));
}

}  // namespace
}  // namespace hone::tuner
