// The real command as a process: Ctrl-C, and an output that cannot be written.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/names.h"
#include "tests/tuner/support.h"
#include "tuner/interrupt.h"

namespace hone::tuner {
namespace {

using test::Names;
using testing::TemporaryFolder;

/// The command as a child process whose standard error and output arrive in one pipe.
class Child {
 public:
  explicit Child(std::vector<std::string> args) {
    args.insert(args.begin(), HONE_COMMAND);
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDERR_FILENO);
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    end_ = ends[0];
  }

  ~Child() { close(end_); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Reads until `text` was written; false when the output ended before.
  bool wait_for(const std::string& text) {
    std::array<char, 4096> buffer{};
    while (text.empty() || output_.find(text) == std::string::npos) {
      const ssize_t count = read(end_, buffer.data(), buffer.size());
      if (count <= 0) return false;
      output_.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return true;
  }

  void interrupt() const { kill(pid_, SIGINT); }

  /// The wait status, after reading the rest of the output.
  int finish() {
    wait_for("");
    int status = 0;
    waitpid(pid_, &status, 0);
    return status;
  }

  const std::string& output() const { return output_; }

 private:
  pid_t pid_ = 0;
  int end_ = -1;
  std::string output_;
};

TEST(Interrupt, KeepsWhatIsFinishedAndExits130) {
  const TemporaryFolder folder;
  const std::string cache = (folder / "cache.sqlite").string();
  const std::vector<std::string> args{"tune",     "--device", "host",    "--size", "2^8..2^20",
                                      "--budget", "3s",       "--cache", cache};
  Child first(args);
  ASSERT_TRUE(first.wait_for("[ 1/13] sum f32 2^8: ")) << first.output();
  first.interrupt();
  const int status = first.finish();
  ASSERT_TRUE(WIFEXITED(status)) << first.output();
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_THAT(first.output(), Names("interrupted", "finished"));
  EXPECT_THAT(first.output(), Names("not reached"));

  Child second({"tune", "--device", "host", "--size", "2^8", "--cache", cache});
  EXPECT_EQ(second.finish(), 0);
  EXPECT_THAT(second.output(), Names("0 tuned", "1 kept", "cache"));
}

TEST(InterruptDeathTest, TheSecondOneKills) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const InterruptWatcher watcher;
        kill(getpid(), SIGINT);
        while (!watcher.token().stop_requested()) usleep(1000);
        for (int i = 0; i < 5000; ++i) {
          kill(getpid(), SIGINT);
          usleep(1000);
        }
        _exit(0);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

TEST(InterruptWatcher, LeavesNothingBehind) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  { const InterruptWatcher watcher; }
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
  EXPECT_EQ(sigismember(&before, SIGUSR2), sigismember(&after, SIGUSR2));
}

TEST(HoneCommand, ALimitOfTheFileSizeIsTheReasonWhereverAJournalMeetsIt) {
  const std::string cache = ::testing::TempDir() + "limited.sqlite", err = ::testing::TempDir() + "limited.err";
  std::ofstream(cache).close();
  const auto prune = [&](const std::string& limit) {
    return std::string(HONE_COMMAND) + " cache prune --cache " + cache + " --limit " + limit + " > /dev/null 2> " + err;
  };
  ASSERT_EQ(std::system(prune("20Mi").c_str()), 0);
  for (int kib = 1; kib <= 12; ++kib) {  // at the end of the transaction, SQLite undoes it before it reports
    if (std::system(("ulimit -f " + std::to_string(2 * kib) + "; " + prune("10Mi")).c_str()) == 0) break;
    std::ifstream in(err);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_THAT(text, ::testing::HasSubstr("no space left to grow")) << kib;
  }
}

TEST(HoneCommand, OutputThatCannotBeWrittenIsSaidOnceOfFilesToo) {
  const std::string cache = ::testing::TempDir() + "output.sqlite", err = ::testing::TempDir() + "output.err";
  std::ofstream(cache).close();
  const std::string command = HONE_COMMAND " cache export --cache " + cache + " > /dev/full 2> " + err;
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 4);
  std::ifstream in(err);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(text, ::testing::HasSubstr("is the disk full?"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("cannot write")));
}

TEST(HoneCommand, OutputThatCannotBeWrittenIsCode4) {
  for (const char* words : {"--help", "devices --known"}) {
    const std::string command = std::string(HONE_COMMAND " ") + words + " > /dev/full 2> /dev/null";
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 4) << words;
  }
}

}  // namespace
}  // namespace hone::tuner
