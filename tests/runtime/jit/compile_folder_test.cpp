// Folders of compilers that processes left behind.
#include "runtime/jit/compile_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

namespace hone {
namespace {

namespace fs = std::filesystem;

TEST(CompileFolder, OldOnesThatNobodyUsesAreRemoved) {
  std::string name = (fs::temp_directory_path() / "compile-folder-test-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const fs::path parent = name;
  const auto make = [&](const std::string& folder, bool has_lock, std::chrono::minutes age) {
    fs::create_directory(parent / folder);
    std::ofstream(parent / folder / "unit.cu") << "half of it";
    if (has_lock) std::ofstream(parent / folder / ".in_use");
    fs::last_write_time(parent / folder, fs::file_time_type::clock::now() - age);
  };
  make("hone-compile-killed", true, std::chrono::minutes(2));
  make("hone-compile-early", false, std::chrono::minutes(2));
  make("hone-compile-young", false, std::chrono::minutes(0));
  make("hone-compile-used", true, std::chrono::minutes(2));
  make("others", false, std::chrono::minutes(2));
  const int used = ::open((parent / "hone-compile-used" / ".in_use").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(used, LOCK_EX | LOCK_NB), 0);

  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  ::setenv("TMPDIR", parent.c_str(), 1);
  { const CompileFolder folder; }
  before ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
  ::close(used);

  EXPECT_FALSE(fs::exists(parent / "hone-compile-killed"));
  EXPECT_FALSE(fs::exists(parent / "hone-compile-early")) << "of a process that was killed before it made the lock";
  EXPECT_TRUE(fs::exists(parent / "hone-compile-young"));
  EXPECT_TRUE(fs::exists(parent / "hone-compile-used"));
  EXPECT_TRUE(fs::exists(parent / "others"));
  fs::remove_all(parent);
}

}  // namespace
}  // namespace hone
