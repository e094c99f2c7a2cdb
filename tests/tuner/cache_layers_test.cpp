// Commands name the files that their session cannot use, and say where shipped winners were tuned.
#include <gmock/gmock.h>

#include <iostream>

#include "tests/support/names.h"
#include "tests/tuner/end_to_end_fixture.h"

namespace hone::tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using test::Names;
using testing::CommandRun;
using testing::isolated_environment;
using testing::npy_file;
using testing::run_hone;

TEST_F(EndToEnd, AnUnusableCacheIsAWarning) {
  const CommandRun run = hone({"reduce", file("d.npy", npy_file<float>("<f4", {1, 2})), "--device", "host", "--on-miss",
                               "heuristic", "--cache", folder_.path().string()});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err, Names("warning", "cache"));
  EXPECT_THAT(run.out, Names("heuristic"));
}

TEST_F(EndToEnd, EveryUnusableFileIsNamedAndNoneInTheAdvice) {
  const std::string data = file("d.npy", npy_file<float>("<f4", {1, 2}));
  const std::string junk = file("junk.sqlite", "a letter"), picture = file("x.f32", "a picture");
  const std::string folder = (folder_ / "folder.sqlite").string(), own = file("own.sqlite", "another letter");
  std::filesystem::create_directory(folder);
  Environment environment = isolated_environment();
  environment.session_options = [&] {
    SessionOptions options;
    options.system_caches = {junk, picture, folder};
    options.report_untuned = [](std::string_view message) { std::cerr << message; };
    return options;
  };
  ::testing::internal::CaptureStderr();
  const CommandRun run = run_hone({"reduce", data, "--device", "host", "--cache", own}, environment);
  const std::string advice = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err, Names(junk, picture, folder, own));
  EXPECT_THAT(advice, Names("hone tune reduce --op sum", "can be used"));
  EXPECT_THAT(advice, Not(HasSubstr("--missed")));
  EXPECT_THAT(advice, Not(HasSubstr(own)));
  // A tuning names the files that it does without, too, and stores what it finds.
  const CommandRun tuned = run_hone({"tune", "--device", "host", "--size", "300", "--budget", "3s", "--again", "-q",
                                     "--cache", cache_.string()},
                                    environment);
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_THAT(tuned.err, Names(junk, picture, folder));
}

TEST_F(EndToEnd, NoTuningIntoAFileThatIsOnlyReadIsAdvised) {
  const std::string data = file("d.npy", npy_file<float>("<f4", {1, 2})), only_read = (folder_ / "own.sqlite").string();
  const CommandRun run = run_hone({"reduce", data, "--device", "host", "--on-miss", "error", "--cache",
                                   "ro:" + only_read},
                                  isolated_environment());
  EXPECT_EQ(run.code, 6);
  const std::string advice = run.err.substr(run.err.find("; "));
  EXPECT_THAT(advice, Names("hone tune reduce --op sum", "can be used"));
  EXPECT_THAT(advice, Not(HasSubstr("--cache " + only_read)));
}

TEST_F(EndToEnd, ShippedWinnersSayWhereTheyWereTunedAndAreTunedAnew) {
  ASSERT_EQ(hone({"tune", "--device", "host", "--size", "5000", "--budget", "3s"}).code, 0);
  const std::filesystem::path shipped = folder_ / "host.winners";
  ASSERT_EQ(hone({"cache", "export", "--text", "--device", "host", shipped.string()}).code, 0);
  cache_ = folder_ / "new.sqlite";
  Environment environment = isolated_environment(cache_);
  environment.session_options = [&] {
    SessionOptions options;
    options.cache_path = cache_;
    options.shipped_winners = {shipped};
    return options;
  };
  const std::string data = file("d.npy", npy_file<float>("<f4", std::vector<float>(5000, 1)));
  const CommandRun reduced = run_hone({"reduce", data, "--device", "host"}, environment);
  EXPECT_THAT(reduced.out, Names("5000", "shipped"));
  for (const std::vector<std::string>& words : {std::vector<std::string>{"explain", "--size", "5000"},
                                                std::vector<std::string>{"inspect", "1"}}) {
    const CommandRun run = hone(words);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out, Names("on ", "driver", "hone tune"));
    EXPECT_THAT(run.out, Not(HasSubstr("--again")));
  }
  const CommandRun emitted = hone({"emit", "--size", "5000"});
  EXPECT_THAT(emitted.out, Names("µs at n =", "GB/s on"));
  const nlohmann::json row = nlohmann::json::parse(hone({"inspect", "--json"}).out)["winners"].at(0);
  EXPECT_EQ(row["how"], "shipped");
  EXPECT_TRUE(row["measured_by"].is_null());
  EXPECT_THAT(hone({"tune", "--device", "host", "--size", "5000", "--budget", "3s"}).out, Names("1 tuned"));
}

}  // namespace
}  // namespace hone::tuner
