#include "tuner/campaign/device_lock.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "tests/cache/support.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;
using cache::read_bytes;
using cache::write_text;

class DeviceLockFile : public ::testing::Test {
 protected:
  DeviceLock lock() const { return DeviceLock(cache_, "host", {}, [](long) {}); }

  void expect_refused(const std::string& words) const {
    try {
      lock();
      ADD_FAILURE() << "it was taken";
    } catch (const CommandError& error) {
      EXPECT_EQ(error.code(), ExitCode::cache);
      EXPECT_THAT(error.what(), ::testing::HasSubstr(words));
    }
  }

  cache::TempFolder folder_;
  fs::path cache_ = folder_ / "cache.sqlite";
  fs::path file_ = folder_ / "cache.sqlite.host.tuning";
  fs::path victim_ = folder_ / "precious.txt";
};

TEST_F(DeviceLockFile, HoldsTheNumberOfItsProcess) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(lock().is_held());
    EXPECT_EQ(read_bytes(file_).size(), 21u);
  }
}

TEST_F(DeviceLockFile, LinkIsNotFollowed) {
  write_text(victim_, "precious");
  fs::create_symlink(victim_, file_);
  expect_refused("it is a symbolic link");
  fs::remove(file_);
  fs::create_hard_link(victim_, file_);
  expect_refused("hard link");
  EXPECT_EQ(read_bytes(victim_).size(), 8u) << "nothing was written to it";
  fs::remove(file_);
  fs::create_symlink(folder_ / "new", file_);
  expect_refused("it is a symbolic link");
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

TEST_F(DeviceLockFile, WhatIsNoLockFileIsLeftAlone) {
  write_text(file_, "somebody's notes");
  expect_refused("it is another file");
  EXPECT_EQ(read_bytes(file_).size(), 16u);
  fs::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  expect_refused("not a regular file");
}

TEST_F(DeviceLockFile, NothingIsMadeWhereOthersMayWrite) {
  fs::permissions(folder_.path(), fs::perms(0777));
  EXPECT_EQ(cache::fault_of([&] { lock(); }, cache_, "may write to"), cache::StoreFault::untrusted);
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(DeviceLockFile, NoUmaskKeepsItsOwnerOut) {
  const ::mode_t before = ::umask(0777);
  { const DeviceLock held = lock(); }
  ::umask(before);
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms(0600));
}

TEST_F(DeviceLockFile, FileOfSomebodyElseIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  write_text(file_, "");
  ASSERT_EQ(::chown(file_.c_str(), 4242, 4242), 0);
  expect_refused("belongs to another user");
}

}  // namespace
}  // namespace hone::tuner
