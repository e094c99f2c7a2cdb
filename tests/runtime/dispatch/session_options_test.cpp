#include <hone/session.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include <fmt/format.h>

#include <hone/error.h>

#include "tests/runtime/support/temp_folder.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

/// Sets the variables that a session reads, and puts back what was there.
class SessionOptionsTest : public testing::Test {
 protected:
  SessionOptionsTest() {
    for (const char* name :
         {"HONE_CACHE", "HONE_CACHE_PATH", "HONE_BINARIES", "HONE_ON_MISS", "HONE_OBJECTIVE", "HONE_VALIDATE",
          "HONE_CACHE_MAX_BYTES", "HONE_LINE_INFO", "HONE_STATS", "XDG_CACHE_HOME", "HOME"}) {
      const char* value = std::getenv(name);
      before_[name] = value ? std::optional<std::string>(value) : std::nullopt;
      unsetenv(name);
    }
  }
  ~SessionOptionsTest() override {
    for (const auto& [name, value] : before_) value ? setenv(name, value->c_str(), 1) : unsetenv(name);
  }
  static void set(const char* name, const char* value) { setenv(name, value, 1); }

  static void expect_refused(const char* name, const char* value) {
    set(name, value);
    try {
      SessionOptions::from_environment();
      FAIL() << name << "=" << value;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), Names(std::string(name) + " is '" + value + "'"));
    }
  }

 private:
  std::map<const char*, std::optional<std::string>> before_;
};

using Path = std::filesystem::path;

TEST_F(SessionOptionsTest, WithoutAnyVariableThereIsNoFile) {
  const SessionOptions options = SessionOptions::from_environment();
  EXPECT_EQ(options.cache_path, Path());
  EXPECT_EQ(options.on_miss, MissPolicy::heuristic);
  EXPECT_EQ(options.on_miss, SessionOptions().on_miss);
  EXPECT_FALSE(options.validate_pointers);
}

TEST_F(SessionOptionsTest, TheCacheLiesWhereXdgSays) {
  set("HOME", "/home/someone");
  EXPECT_EQ(SessionOptions::from_environment().cache_path, Path("/home/someone/.cache/hone/cache.sqlite"));
  set("XDG_CACHE_HOME", "/var/cache/someone");
  EXPECT_EQ(SessionOptions::from_environment().cache_path, Path("/var/cache/someone/hone/cache.sqlite"));
}

TEST_F(SessionOptionsTest, ARelativeOrEmptyXdgFolderIsIgnored) {
  set("HOME", "/home/someone");
  for (const char* folder : {"relative/folder", ""}) {
    set("XDG_CACHE_HOME", folder);
    EXPECT_EQ(SessionOptions::from_environment().cache_path, Path("/home/someone/.cache/hone/cache.sqlite"));
  }
}

TEST_F(SessionOptionsTest, ARelativeHomeIsNone) {
  set("HOME", "relative");
  EXPECT_EQ(SessionOptions::from_environment().cache_path, Path());
}

TEST_F(SessionOptionsTest, HoneCacheComesFirst) {
  set("HOME", "/home/someone");
  set("XDG_CACHE_HOME", "/var/cache/someone");
  set("HONE_CACHE", "/tmp/x.sqlite");
  EXPECT_EQ(SessionOptions::from_environment().cache_path, Path("/tmp/x.sqlite"));
  set("HONE_CACHE", "off");
  EXPECT_EQ(SessionOptions::from_environment().cache_path, Path());
  set("HONE_CACHE", "");
  EXPECT_EQ(SessionOptions::from_environment().cache_path, Path("/var/cache/someone/hone/cache.sqlite"));
}

TEST_F(SessionOptionsTest, ARelativeHoneCacheIsMadeAbsoluteAtOnce) {
  set("HONE_CACHE", "x.sqlite");
  EXPECT_EQ(SessionOptions::from_environment().cache_path, std::filesystem::current_path() / "x.sqlite");
}

TEST_F(SessionOptionsTest, TheModeStandsBeforeThePath) {
  set("HOME", "/home/someone");
  struct Case {
    const char* text;
    Path path;
    bool read_only;
  };
  const Path usual = "/home/someone/.cache/hone/cache.sqlite";
  for (const Case& expected : {Case{"rw", usual, false}, Case{"ro", usual, true}, Case{"ro:/x/y", "/x/y", true},
                               Case{"rw:/x/y", "/x/y", false},
                               Case{"rw:ro:", std::filesystem::current_path() / "ro:", false},
                               Case{"./off", std::filesystem::current_path() / "./off", false}}) {
    set("HONE_CACHE", expected.text);
    const SessionOptions options = SessionOptions::from_environment();
    EXPECT_EQ(options.cache_path, expected.path) << expected.text;
    EXPECT_EQ(options.cache_read_only, expected.read_only) << expected.text;
  }
  for (const char* text : {"ro:", "rw:"}) expect_refused("HONE_CACHE", text);
}

TEST_F(SessionOptionsTest, SystemCachesAreFilesOrTheFileOfAFolder) {
  EXPECT_THAT(SessionOptions::from_environment().system_caches,
              testing::ElementsAre(Path("/usr/local/share/hone/cache.sqlite"), Path("/usr/share/hone/cache.sqlite")));
  set("HONE_CACHE_PATH", "/opt/a:/opt/b.sqlite::c");
  EXPECT_THAT(SessionOptions::from_environment().system_caches,
              testing::ElementsAre(Path("/opt/a/cache.sqlite"), Path("/opt/b.sqlite"),
                                   std::filesystem::current_path() / "c" / "cache.sqlite"));
  set("HONE_CACHE_PATH", ":");
  EXPECT_THAT(SessionOptions::from_environment().system_caches, testing::IsEmpty());
  set("HONE_CACHE_PATH", "/opt/a");
  set("HONE_CACHE", "off");
  EXPECT_THAT(SessionOptions::from_environment().system_caches, testing::IsEmpty());
}

TEST_F(SessionOptionsTest, FilesOfOtherNamesAreCaches) {
  const TempFolder folder;
  for (const char* name : {"node.db", "x.f32"}) std::ofstream(folder / name) << "text";
  std::filesystem::create_directory(folder / "hone-0.1");
  const std::string list = fmt::format("{}:{}:{}:{}", (folder / "node.db").string(), (folder / "x.f32").string(),
                                       (folder / "hone-0.1").string(), (folder / "missing").string());
  set("HONE_CACHE_PATH", list.c_str());
  EXPECT_THAT(SessionOptions::from_environment().system_caches,
              testing::ElementsAre(folder / "node.db", folder / "x.f32", folder / "hone-0.1" / "cache.sqlite",
                                   folder / "missing" / "cache.sqlite"));
}

TEST_F(SessionOptionsTest, ShippedWinnersAreFilesOrThoseOfAFolder) {
  const TempFolder folder;
  for (const char* name : {"b.winners", "a.winners", "README.md"}) std::ofstream(folder / name) << "text";
  const std::string path = (folder / "").string();
  set("HONE_CACHE_PATH", (path + ":/opt/c.winners").c_str());
  const SessionOptions options = SessionOptions::from_environment();
  EXPECT_THAT(options.shipped_winners,
              testing::ElementsAre(folder / "a.winners", folder / "b.winners", Path("/opt/c.winners")));
  EXPECT_THAT(options.system_caches, testing::ElementsAre(folder / "cache.sqlite"));
  set("HONE_CACHE_PATH", "off");
  EXPECT_THAT(SessionOptions::from_environment().shipped_winners, testing::IsEmpty());
  EXPECT_THAT(SessionOptions::from_environment().system_caches, testing::IsEmpty());
  set("HONE_CACHE_PATH", path.c_str());
  set("HONE_CACHE", "off");
  EXPECT_THAT(SessionOptions::from_environment().shipped_winners, testing::IsEmpty());
}

TEST_F(SessionOptionsTest, ReadsWhetherStoredCodeMayRun) {
  EXPECT_TRUE(SessionOptions::from_environment().load_binaries);
  set("HONE_BINARIES", "off");
  EXPECT_FALSE(SessionOptions::from_environment().load_binaries);
  set("HONE_BINARIES", "on");
  EXPECT_TRUE(SessionOptions::from_environment().load_binaries);
  for (const char* text : {"0", "OFF", "never"}) expect_refused("HONE_BINARIES", text);
}

TEST_F(SessionOptionsTest, LimitsOfTheCacheHaveRoomForWinners) {
  for (const auto& [text, bytes] : std::map<const char*, std::int64_t>{
           {"0", 0}, {"1Mi", 1 << 20}, {"1048576", 1 << 20}, {"2Gi", std::int64_t{2} << 30},
           {"64M", 64'000'000}, {"64MiB", 64 << 20}, {"1.5Gi", 3 << 29}, {"2^30", 1 << 30},
           {"1T", 1'000'000'000'000}}) {
    set("HONE_CACHE_MAX_BYTES", text);
    EXPECT_EQ(SessionOptions::from_environment().cache_max_bytes, bytes);
  }
  for (const char* text : {"1", "80Ki", "1048575", "-1", "64m", "1.5", "MB", "9999999T", "big"})
    expect_refused("HONE_CACHE_MAX_BYTES", text);
}

TEST_F(SessionOptionsTest, AMistakeInWhatOnlyCudaUsesIsRefusedAnywhere) {
  for (const char* text : {"on", "off"}) {
    set("HONE_LINE_INFO", text);
    EXPECT_NO_THROW(SessionOptions::from_environment());
  }
  for (const char* text : {"yes", "ON", "1"}) expect_refused("HONE_LINE_INFO", text);
}

TEST_F(SessionOptionsTest, FailuresOfTheCacheGoToTheStandardErrorOutput) {
  testing::internal::CaptureStderr();
  SessionOptions::from_environment().report_cache_failure("the cache /x is damaged");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              Names("hone: the cache /x is damaged", "HONE_CACHE", "HONE_CACHE_PATH", "HONE_STATS"));
}

TEST_F(SessionOptionsTest, ReadsThePolicy) {
  for (const auto& [text, policy] : std::map<const char*, MissPolicy>{
           {"tune", MissPolicy::tune}, {"heuristic", MissPolicy::heuristic}, {"error", MissPolicy::error}}) {
    set("HONE_ON_MISS", text);
    EXPECT_EQ(SessionOptions::from_environment().on_miss, policy);
  }
  for (const char* text : {"Tune", "never", "tune "}) expect_refused("HONE_ON_MISS", text);
}

TEST_F(SessionOptionsTest, WhatIsNotTunedIsReportedOnceUnlessThePolicyWasChosen) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) SessionOptions::from_environment().report_untuned("hone tune --missed tunes it");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "hone: hone tune --missed tunes it\n");
  set("HONE_ON_MISS", "heuristic");
  EXPECT_FALSE(SessionOptions::from_environment().report_untuned);
}

TEST_F(SessionOptionsTest, ReadsTheObjective) {
  EXPECT_EQ(SessionOptions::from_environment().objective, Objective::time);
  set("HONE_OBJECTIVE", "energy");
  EXPECT_EQ(SessionOptions::from_environment().objective, Objective::energy);
  expect_refused("HONE_OBJECTIVE", "power");
}

TEST_F(SessionOptionsTest, ReadsWhetherToValidate) {
  set("HONE_VALIDATE", "1");
  EXPECT_TRUE(SessionOptions::from_environment().validate_pointers);
  set("HONE_VALIDATE", "0");
  EXPECT_FALSE(SessionOptions::from_environment().validate_pointers);
  for (const char* text : {"yes", "2", "true"}) expect_refused("HONE_VALIDATE", text);
}

}  // namespace
}  // namespace hone
