// Folders of compilers that processes left behind.
#include "runtime/jit/compile_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "runtime/jit/host_compiler.h"

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

/// Compiles under the umask as a user whom modes keep out; the exit code of the process that did.
int compile_under(mode_t mask, const fs::path& parent) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) _exit(3);
    umask(mask);
    setenv("TMPDIR", parent.c_str(), 1);
    try {
      const Unit unit{.name = "one",
                      .source = "#include \"a/b.cuh\"\nextern \"C\" __global__ void one(int* a) { *a = kOne; }\n",
                      .headers = {{"a/b.cuh", "constexpr int kOne = 1;\n"}},
                      .entries = {"one"}};
      const Binary binary = HostCompiler("c++", "x86_64", HostInstrumentation::checked).compile(unit);
      _exit(binary.code.empty() ? 1 : 0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(2);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(CompileFolder, IsUsedAndRemovedUnderEveryUmask) {
  std::string name = (fs::temp_directory_path() / "compile-folder-test-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  fs::permissions(name, fs::perms::all);
  for (const mode_t mask : {0777, 0377, 0277, 0177}) {
    EXPECT_EQ(compile_under(mask, name), 0) << mask;
    EXPECT_TRUE(fs::is_empty(name)) << mask;
  }
  fs::remove_all(name);
}

}  // namespace
}  // namespace hone
