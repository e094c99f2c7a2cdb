// A kernel file of four policies in a folder of its own, and the command that is run on it.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "tests/support/long_test.h"
#include "tests/tuner/support.h"

namespace hone::tuner::testing {

inline constexpr std::string_view kSource =
    R"(extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
  for (int u = 0; u < unroll; ++u) {
    const int i = (blockIdx.x * unroll + u) * block_threads + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
  }
}
)";

inline constexpr std::string_view kKernel = R"({
  "file": "axpy.cu",
  "parameters": {"block_threads": [64, 128], "unroll": [1, 2]},
  "where": ["block_threads * unroll <= 256"],
  "elements_per_thread": "unroll",
  "arguments": [
    {"scalar": "a", "type": "f32"},
    {"in": "x", "type": "f32"},
    {"inout": "y", "type": "f32"},
    {"extent": "n", "type": "i32"}
  ]
})";

inline std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string result(text);
  const std::size_t at = result.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return result.replace(at, what.size(), by);
}

inline std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class KernelFile : public test::LongTest {
 protected:
  KernelFile() {
    write_file(folder_ / "axpy.cu", kSource);
    write_file(folder_ / "axpy.json", kKernel);
  }

  CommandRun hone(const std::vector<std::string>& args) {
    Environment environment = isolated_environment(folder_ / "cache.sqlite");
    environment.worker_program = HONE_COMMAND;
    return run_hone(args, environment);
  }

  std::string path(std::string_view name) const { return (folder_ / name).string(); }

  CommandRun tune(const std::vector<std::string>& more = {}) {
    std::vector<std::string> args{"tune", path("axpy.json"), "--size", "1000", "--device", "host", "--budget", "20s"};
    args.insert(args.end(), more.begin(), more.end());
    return hone(args);
  }

  TemporaryFolder folder_;
};

}  // namespace hone::tuner::testing
