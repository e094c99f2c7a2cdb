#include <hone/session.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include <hone/error.h>

namespace hone {
namespace {

/// Sets the variables that a session reads, and puts back what was there.
class SessionOptionsTest : public testing::Test {
 protected:
  SessionOptionsTest() {
    for (const char* name : {"HONE_CACHE", "HONE_ON_MISS", "HONE_VALIDATE", "XDG_CACHE_HOME", "HOME"}) {
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
      EXPECT_THAT(error.what(), testing::HasSubstr(std::string(name) + " is '" + value + "'"));
    }
  }

 private:
  std::map<const char*, std::optional<std::string>> before_;
};

using Path = std::filesystem::path;

TEST_F(SessionOptionsTest, WithoutAnyVariableThereIsNoFile) {
  const SessionOptions options = SessionOptions::from_environment();
  EXPECT_EQ(options.cache_path, Path());
  EXPECT_EQ(options.on_miss, MissPolicy::tune);
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

TEST_F(SessionOptionsTest, ReadsThePolicy) {
  for (const auto& [text, policy] : std::map<const char*, MissPolicy>{
           {"tune", MissPolicy::tune}, {"heuristic", MissPolicy::heuristic}, {"error", MissPolicy::error}}) {
    set("HONE_ON_MISS", text);
    EXPECT_EQ(SessionOptions::from_environment().on_miss, policy);
  }
  for (const char* text : {"Tune", "never", "tune "}) expect_refused("HONE_ON_MISS", text);
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
