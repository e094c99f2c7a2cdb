// Campaigns that are interrupted and go on, and two at once, as real processes.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cache/store.h"
#include "tests/support/long_test.h"
#include "tests/support/names.h"
#include "tests/tuner/support.h"

namespace hone::tuner {
namespace {

using namespace std::chrono_literals;
using test::Names;

class ResumeTest : public test::LongTest {
 protected:
  /// `hone tune` with a log file for its output.
  pid_t start(const std::string& log, const std::string& sizes = "2^8..2^12", const std::string& budget = "2s") const {
    std::vector<std::string> args{HONE_COMMAND, "tune", "--device", "host", "--size",  sizes,
                                  "--budget",   budget, "--regret", "0",    "--cache", cache_.string()};
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    const std::string path = (folder_ / log).string();
    const pid_t pid = fork();
    if (pid == 0) {
      freopen(path.c_str(), "w", stdout);
      dup2(STDOUT_FILENO, STDERR_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    return pid;
  }

  static int finish(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
  }

  std::string output(const std::string& log) const {
    std::ifstream in(folder_ / log);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Returns the winner's row of each tuned size, which a new tuning would replace.
  std::map<std::int64_t, std::int64_t> winners() const {
    std::map<std::int64_t, std::int64_t> ids;
    for (const cache::StoredWinner& stored : cache::Store(cache_).winners())
      if (stored.winner.tuned) ids[stored.winner.tuned_extents[0]] = stored.id;
    return ids;
  }

  testing::TemporaryFolder folder_;
  std::filesystem::path cache_ = folder_ / "cache.sqlite";
};

TEST_F(ResumeTest, NothingIsTunedTwiceHoweverOftenItIsInterrupted) {
  std::mt19937 random(5);
  std::map<std::int64_t, std::int64_t> known;
  for (int round = 0; round < 6; ++round) {
    const pid_t pid = start("log");
    std::this_thread::sleep_for(std::chrono::milliseconds(100 + random() % 3000));
    kill(pid, round % 2 == 0 ? SIGINT : SIGKILL);
    finish(pid);
    const auto now = winners();
    for (const auto& [size, id] : known) {
      ASSERT_TRUE(now.contains(size)) << "the winner of " << size << " is lost\n" << output("log");
      EXPECT_EQ(now.at(size), id) << size << " was tuned again\n" << output("log");
    }
    known = now;
  }
  EXPECT_EQ(finish(start("last")), 0) << output("last");
  // On a machine that is busy a budget may have allowed for one candidate alone.
  const auto all = winners();
  EXPECT_EQ(cache::Store(cache_).winners().size(), 5U) << output("last");
  for (const auto& [size, id] : known) EXPECT_EQ(all.at(size), id);
}

TEST_F(ResumeTest, OfTwoAtOnceTheSecondWaitsAndTunesNothingAgain) {
  const pid_t first = start("first", "2^8..2^9", "6s");
  while (output("first").find("Tuning 2 problems") == std::string::npos && kill(first, 0) == 0 &&
         waitpid(first, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(10ms);
  const pid_t second = start("second", "2^8..2^9", "6s");
  EXPECT_EQ(finish(first), 0) << output("first");
  const auto tuned = winners();
  EXPECT_EQ(finish(second), 0) << output("second");
  EXPECT_THAT(output("second"), Names("waiting", "host", "process " + std::to_string(first)));
  // All that had been tuned is kept; on a machine that is busy a budget may have allowed for one candidate alone.
  EXPECT_THAT(output("second"), Names(std::to_string(tuned.size()) + " kept"));
  const auto all = winners();
  EXPECT_FALSE(tuned.empty());
  for (const auto& [size, id] : tuned) EXPECT_EQ(all.at(size), id) << "tuned again";
}

}  // namespace
}  // namespace hone::tuner
