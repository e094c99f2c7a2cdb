#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "runtime/jit/nvrtc_compiler.h"

namespace hone {
namespace {

bool nvrtc_is_loaded() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libnvrtc") != std::string::npos) return true;
  }
  return false;
}

TEST(NvrtcCompiler, IsNotLoadedBeforeTheFirstCompile) {
  const NvrtcCompiler compiler(NvrtcSearch::from_environment());
  if (compiler.identity().empty()) GTEST_SKIP() << "NVRTC is not installed";
  EXPECT_FALSE(nvrtc_is_loaded());
  compiler.compile(
      {.name = "empty", .source = "extern \"C\" __global__ void empty() {}\n", .headers = {}, .entries = {"empty"}},
      "sm_90");
  EXPECT_TRUE(nvrtc_is_loaded());
}

}  // namespace
}  // namespace hone
