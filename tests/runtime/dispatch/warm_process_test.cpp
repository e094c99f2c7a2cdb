// A second process with a warm cache compiles nothing and opens no compiler.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/runtime/support/device_fixture.h"
#include "tests/runtime/support/temp_folder.h"

namespace hone {
namespace {

class WarmProcess : public DeviceTest {
 protected:
  /// Returns what warm_process, which lies beside the tests, prints; `environment` goes in front of it.
  std::string run(const std::string& environment = "") const {
    const std::filesystem::path program =
        std::filesystem::read_symlink("/proc/self/exe").replace_filename("warm_process");
    const std::string command = environment + " '" + program.string() + "' " + kTestDevice + " '" +
                                (folder_ / "cache.sqlite").string() + "'";
    std::FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) return "cannot start";
    std::string output;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
    pclose(pipe);
    return output;
  }

  TempFolder folder_;
};

TEST_F(WarmProcess, CompilesNothingAndOpensNoCompiler) {
  const std::string nvrtc = is_cuda() ? "1" : "0";
  EXPECT_EQ(run(), "total=1000 compiles=1 cache_hits=0 tunings=1 cache_failures=0 nvrtc=" + nvrtc + "\n");
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(run(), "total=1000 compiles=0 cache_hits=1 tunings=0 cache_failures=0 nvrtc=0\n");
}

TEST_F(WarmProcess, NeedsNoCompilerAtAll) {
  run();
  // A compiler that is not there: a start would fail, and NVRTC could not be found.
  EXPECT_EQ(run("HONE_CXX=/nowhere/c++ HONE_NVRTC=/nowhere/libnvrtc.so"),
            "total=1000 compiles=0 cache_hits=1 tunings=0 cache_failures=0 nvrtc=0\n");
}

TEST_F(WarmProcess, CompilesNothingUnderAnotherCompiler) {
  if (is_cuda()) GTEST_SKIP() << "there is one NVRTC; AbsentGpu tests another";
  run();
  const std::filesystem::path other = folder_ / "other-c++";
  std::ofstream(other) << "#!/bin/sh\necho nothing is to be compiled >&2\nexit 1\n";
  std::filesystem::permissions(other, std::filesystem::perms::owner_all);
  EXPECT_EQ(run("HONE_CXX='" + other.string() + "'"),
            "total=1000 compiles=0 cache_hits=1 tunings=0 cache_failures=0 nvrtc=0\n");
}

}  // namespace
}  // namespace hone
