// hone check with kernel files: every policy is run and compared, and planted bugs are found with their lines.
#include <gmock/gmock.h>
#include <hone/sdk/gpu_compiler.h>
#include <nlohmann/json.hpp>

#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/names.h"
#include "tests/tuner/kernel_file_fixture.h"
#include "tuner/check/check_policies.h"
#include "tuner/problems/problem_selection.h"

namespace hone::tuner {
namespace {

using testing::CommandRun;
using testing::content;
using ::testing::HasSubstr;
using testing::KernelFile;
using testing::kKernel;
using testing::kSource;
using test::Names;
using ::testing::Not;
using testing::replaced;
using testing::write_file;

TEST_F(KernelFile, EveryPolicyIsChecked) {
  const CommandRun right = hone({"check", path("axpy.json")});
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  EXPECT_THAT(right.out, Names("4 policies", "no check", "hone tune"));

  // Only where a thread computes two elements is the guard missing.
  write_file(folder_ / "axpy.cu", replaced(kSource, "if (i < n)", "if (i < n || u == 1)"));
  write_file(folder_ / "unguarded.json", kKernel);
  const CommandRun wrong = hone({"check", path("unguarded.json"), "--order", "forward"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.out, Names("failed: block_threads=64 unroll=2", "axpy.cu:4", "2 of 4 policies", "to see it again"));
  EXPECT_THAT(wrong.out, Not(HasSubstr("failed: block_threads=64 unroll=1")));
}

TEST_F(KernelFile, ATerminalShowsWhichPolicyIsChecked) {
  Environment environment = testing::isolated_environment(folder_ / "cache.sqlite");
  environment.err_columns = [] { return 60; };
  const std::vector<std::string> check{"check", path("axpy.json"), "--order", "forward"};
  const CommandRun run = testing::run_hone(check, environment);
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_THAT(run.err, ::testing::StartsWith("\r\x1b[K[1/4] block_threads=64 unroll=1\r"));
  EXPECT_THAT(run.err, ::testing::ContainsRegex("\r\x1b\\[K\\[4/4\\] block_threads=128 unroll=2  about [^\r]* left"));
  EXPECT_THAT(run.err, ::testing::EndsWith("\r\x1b[K"));
  EXPECT_EQ(hone(check).err, "");
}

constexpr std::string_view kDouble = R"(extern "C" __global__ void twice(float* x, float* y, int n) {
  const int i = blockIdx.x * block_threads + threadIdx.x;
  if (i < n) y[i] = i < n / 2 ? 2 * x[i] : 0;
}
)";

constexpr std::string_view kDoubleFile = R"({
  "file": "twice.cu",
  "parameters": {"block_threads": [64]},
  "arguments": [{"in": "x", "type": "f32"}, {"out": "y", "type": "f32"}, {"extent": "n", "type": "i32"}],
  "reference": {"file": "plain.cu"}
})";

constexpr std::string_view kPlainDouble = R"(__global__ void plain(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = i < n / 2 ? 2 * x[i] : 0;
}
)";

TEST_F(KernelFile, WhatIsNotWrittenOrMayNotBeWrittenIsFound) {
  write_file(folder_ / "twice.json", kDoubleFile);
  write_file(folder_ / "plain.cu", kPlainDouble);
  const auto check = [&](std::string_view statement) {
    write_file(folder_ / "twice.cu", replaced(kDouble, "y[i] = i < n / 2 ? 2 * x[i] : 0;", statement));
    return hone({"check", path("twice.json"), "--order", "forward"});
  };
  EXPECT_EQ(check("y[i] = i < n / 2 ? 2 * x[i] : 0;").code, 0);

  const CommandRun unwritten = check("{ if (i < n / 2) y[i] = 2 * x[i]; }");
  EXPECT_EQ(unwritten.code, 1) << unwritten.out;
  EXPECT_THAT(unwritten.out, Names("y[501]", "nan", "reference", "0", "not written"));

  const CommandRun read = check("y[i] = y[i] * 0 + (i < n / 2 ? 2 * x[i] : 0);");
  EXPECT_EQ(read.code, 1) << read.out;
  EXPECT_THAT(read.out, Names("depend", "outputs", "before", "inout"));

  const CommandRun input = check("{ y[i] = i < n / 2 ? 2 * x[i] : 0; x[i] = 3; }");
  EXPECT_EQ(input.code, 1) << input.out;
  EXPECT_THAT(input.out, Names("wrote to the input 'x'", "byte 0", "inout"));
}

TEST_F(KernelFile, ATuningFindsZerosThatAreNotWritten) {
  write_file(folder_ / "twice.json", kDoubleFile);
  write_file(folder_ / "plain.cu", kPlainDouble);
  write_file(folder_ / "twice.cu",
             replaced(kDouble, "y[i] = i < n / 2 ? 2 * x[i] : 0;", "{ if (i < n / 2) y[i] = 2 * x[i]; }"));
  const CommandRun run =
      hone({"tune", path("twice.json"), "--size", "1000", "--device", "host", "--budget", "20s"});
  EXPECT_EQ(run.code, 6) << run.out;
  EXPECT_THAT(run.err, Names("y[500]", "nan", "not written"));
}

TEST_F(KernelFile, PoliciesThatAreNotCheckedAreNamedWithTheReason) {
  const std::string large = replaced(replaced(kKernel, "\"where\": [\"block_threads * unroll <= 256\"],\n", ""),
                                     "[64, 128], \"unroll\": [1, 2]", "[64, 2048, 2000000000000], \"unroll\": [1]");
  write_file(folder_ / "large.json", large);
  const CommandRun run = hone({"check", path("large.json"), "--order", "forward"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, Names("1 policy", "not run", "2048", "2000000000000", "no check found anything"));
  const auto json = nlohmann::json::parse(hone({"check", path("large.json"), "--order", "forward", "--json"}).out);
  ASSERT_EQ(json["invalid"].size(), 2U) << json;
  EXPECT_EQ(json["invalid"][0]["count"], 1);
}

/// The command that a report says, run as it is.
CommandRun repeated(const CommandRun& run) {
  constexpr std::string_view kBefore = "to see it again: hone ";
  const std::size_t at = run.out.find(kBefore);
  EXPECT_NE(at, std::string::npos) << run.out;
  if (at == std::string::npos) return {};
  const std::size_t begin = at + kBefore.size();
  const std::string arguments = run.out.substr(begin, run.out.find('\n', begin) - begin);
  std::FILE* const pipe = popen((HONE_COMMAND " " + arguments + " 2>&1").c_str(), "r");
  CommandRun again;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) again.out += static_cast<char>(c);
  again.code = WEXITSTATUS(pclose(pipe));
  return again;
}

/// Addresses differ from run to run.
std::string without_addresses(const std::string& text) {
  static const std::regex kAddress("0x[0-9a-f]+");
  return std::regex_replace(text, kAddress, "0x…");
}

TEST_F(KernelFile, TheCommandThatRepeatsAFailureIsComplete) {
  // Only the default sizes are right.
  write_file(folder_ / "axpy.cu", replaced(kSource, "if (i < n)", "if (i < n || n == 997)"));
  const CommandRun sized = hone({"check", path("axpy.json"), "--size", "997", "--order", "reverse"});
  ASSERT_EQ(sized.code, 1) << sized.out << sized.err;
  const CommandRun again = repeated(sized);
  EXPECT_EQ(again.code, 1) << again.out;
  EXPECT_EQ(without_addresses(again.out), without_addresses(sized.out));

  write_file(folder_ / "it's.cu", "__global__ void other() {}\n"
                                  "template <class T> __global__ void pick(T* to, int at) {\n"
                                  "  extern __shared__ T own[];\n"
                                  "  own[threadIdx.x] = blockIdx.x + blockIdx.y;\n"
                                  "  to[threadIdx.x] = own[at];\n}\n");
  const CommandRun launched =
      hone({"check", path("it's.cu"), "--entry", "pick<float>", "--grid", "2,2", "--block", "32", "--smem", "128",
            "--arg", "f32[32]=iota", "--arg", "i32=3", "--order", "reverse", "--order", "random:3", "--arch", "sm_80"});
  ASSERT_EQ(launched.code, 1) << launched.out << launched.err;
  EXPECT_EQ(without_addresses(repeated(launched).out), without_addresses(launched.out));
}

TEST_F(KernelFile, WhatNvrtcDoesNotCompileFails) {
  if (GpuCompiler().identity().empty()) GTEST_SKIP() << "there is no NVRTC";
  write_file(folder_ / "axpy.cu", "#include <stdio.h>\n" + std::string(kSource));
  const CommandRun run = hone({"check", path("axpy.json"), "--order", "forward"});
  EXPECT_EQ(run.code, 6) << run.out << run.err;
  EXPECT_THAT(run.out, Names("4 of 4 policies", path("axpy.cu") + "(1)", "stdio.h"));
  const CommandRun unknown = hone({"check", path("axpy.json"), "--arch", "sm90"});
  EXPECT_EQ(unknown.code, 6) << unknown.out;
  EXPECT_THAT(unknown.err, Names("sm90", "sm_90"));
}

TEST_F(KernelFile, AnEndlessLoopIsStoppedAfterTheDeadline) {
  write_file(folder_ / "axpy.cu", replaced(kSource, "++u", "u += x[0] > 1"));
  const CommandRun run = hone({"check", path("axpy.json"), "--deadline", "200ms"});
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_THAT(run.out, Names("200 ms", "--deadline", "HostCheck::deadline", "not run after the last", "3 policies"));
  EXPECT_THAT(run.out, HasSubstr(" --deadline 200ms --order forward"));
  EXPECT_EQ(hone({"check", path("axpy.json"), "--deadline", "soon"}).code, 2);
}

TEST_F(KernelFile, EveryPolicyIsCheckedAfterOneThatFailsThoughItsCheckTookLong) {
  write_file(folder_ / "axpy.cu", replaced(kSource, "if (i < n)", "if (i < n || u == 1)"));
  const Problem problem = list_problems({.family = path("axpy.json"), .sizes = "1003"}).front();
  const PolicyChecks checks = check_policies(problem, {HostOrder{}}, std::chrono::milliseconds(200), "sm_90");
  EXPECT_EQ(checks.run.size(), 4U);
  EXPECT_EQ(checks.not_run, 0);
}

constexpr std::string_view kFlip = R"(extern "C" __global__
void flip(const float* in, float* out, int width, int height) {
  __shared__ float tile[block_x];
  const int x = blockIdx.x * block_x + threadIdx.x, y = blockIdx.y;
  if (x < width) tile[threadIdx.x] = in[(long long)y * width + x];
  __syncthreads();
  const int from = blockIdx.x * block_x + (block_x - 1 - threadIdx.x);
  if (x < width && from < width) out[(long long)y * width + x] = tile[block_x - 1 - threadIdx.x];
  else if (x < width) out[(long long)y * width + x] = 0;
}
)";

constexpr std::string_view kFlipFile = R"({
  "file": "flip.cu",
  "parameters": {"block_x": [64]},
  "block": ["block_x"],
  "extents": ["width", "height"],
  "arguments": [
    {"in": "in", "type": "f32"},
    {"out": "out", "type": "f32"},
    {"extent": "width", "type": "i32"},
    {"extent": "height", "type": "i32"}
  ]
})";

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(KernelFile, PlantedBugsAreFoundWithTheirLines) {
  const auto check = [&](const char* name, const std::string& source) {
    write_file(folder_ / "flip.cu", source);
    write_file(folder_ / name, kFlipFile);
    return hone({"check", path(name)});
  };
  const CommandRun right = check("right.json", std::string(kFlip));
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  EXPECT_THAT(right.out, Names("32-bit", "131101x16411"));

  const CommandRun race = check("race.json", replaced(kFlip, "  __syncthreads();", ""));
  EXPECT_EQ(race.code, 1);
  EXPECT_THAT(race.out, ::testing::AllOf(test::HasLine("flip.cu:5", "writes"), test::HasLine("flip.cu:8", "reads"),
                                         test::HasLine("\"tile\""), HasSubstr("1 of 1 policies")));
  EXPECT_TRUE(race.out.ends_with("put __syncthreads() between these two\n")) << race.out;

  const CommandRun overflow =
      check("overflow.json", replaced(kFlip, "out[(long long)y * width + x] = tile", "out[y * width + x] = tile"));
  EXPECT_EQ(overflow.code, 1);
  EXPECT_THAT(overflow.out, ::testing::AllOf(test::HasLine("flip.cu:8", "thread"), Names("131101x16411", "'int'")));
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose memory large runs would take
TEST_F(KernelFile, WhatEndsTheLargeRunFailsTheCheckWithTheSizes) {
  const auto check = [&](const std::string& statement) {
    write_file(folder_ / "axpy.cu", "#ifdef HONE_HOST_DEVICE\nextern \"C\" void _exit(int);\n#endif\n" +
                                        replaced(kSource, "if (i < n)", "if (n > 100000) " + statement + "if (i < n)"));
    const std::string name = statement.substr(0, 6) + ".json";
    write_file(folder_ / name, kKernel);
    const CommandRun run = hone({"check", path(name), "--order", "forward"});
    EXPECT_EQ(run.code, 1) << run.out << run.err;
    return run;
  };
  EXPECT_THAT(check("__trap();").out, Names("4 of 4 policies", "axpy run f32 2146435071", "__trap()", "axpy.cu:7"));
  EXPECT_THAT(check("_exit(3);").out, Names("axpy run f32 2146435071", "ended", "exit status 3"));
}
#endif

TEST_F(KernelFile, WhatDoesNotCompileIsCode6WithThePathOfItsSource) {
  write_file(folder_ / "part.cuh", "__device__ float other() { return undeclared; }\n");
  write_file(folder_ / "axpy.cu", "#include \"part.cuh\"\n" + replaced(kSource, "a * x[i]", "unknown * x[i]"));
  const CommandRun run = hone({"check", path("axpy.json"), "--order", "forward"});
  EXPECT_EQ(run.code, 6) << run.out << run.err;
  EXPECT_THAT(run.out, Names("4 of 4 policies", path("axpy.cu") + ":5", path("part.cuh") + ":1"));

  write_file(folder_ / "partly.json", kKernel);
  write_file(folder_ / "axpy.cu",
             "#if unroll == 2\nint wrong = ;\n#endif\n" + replaced(kSource, "if (i < n)", "if (i <= n)"));
  EXPECT_EQ(hone({"check", path("partly.json"), "--order", "forward"}).code, 1) << "a fault that was found goes before";
}

TEST_F(KernelFile, AReportMayBeJson) {
  const CommandRun right = hone({"check", path("axpy.json"), "--order", "forward", "--json"});
  EXPECT_EQ(right.code, 0) << right.err;
  const auto report = nlohmann::json::parse(right.out);
  EXPECT_EQ(report["failed"], 0);
  EXPECT_EQ(report["orders"], nlohmann::json({"forward"}));
  ASSERT_EQ(report["policies"].size(), 4u);
  EXPECT_EQ(report["policies"][0]["policy"], "block_threads=64 unroll=1");
  EXPECT_EQ(report["policies"][0]["ok"], true);
  EXPECT_EQ(report["policies"][0]["failure"], nullptr);

  write_file(folder_ / "axpy.cu", replaced(kSource, "if (i < n)", "if (i < n || u == 1)"));
  write_file(folder_ / "unguarded.json", kKernel);
  const CommandRun wrong = hone({"check", path("unguarded.json"), "--order", "forward", "--json"});
  EXPECT_EQ(wrong.code, 1);
  const auto found = nlohmann::json::parse(wrong.out);
  EXPECT_EQ(found["failed"], 2);
  EXPECT_EQ(found["policies"][1]["ok"], false);
  EXPECT_EQ(found["policies"][1]["failed_order"], "forward");
  EXPECT_THAT(found["policies"][1]["failure"].get<std::string>(), HasSubstr("axpy.cu:4"));
}

TEST_F(KernelFile, AWrongPolicyIsFoundByComparingWithTheDefaultOne) {
  write_file(folder_ / "axpy.cu", replaced(kSource, "a * x[i]", "(unroll == 2 ? 1.01f : 1.0f) * a * x[i]"));
  const CommandRun run = hone({"check", path("axpy.json"), "--order", "forward"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.out, Names("unroll=2", "y[0]", "reference"));
}

TEST_F(KernelFile, WhereNoPolicyIsValidTheReasonsAreCounted) {
  write_file(folder_ / "axpy.json", replaced(replaced(kKernel, "[64, 128]", "[2048, 4096]"),
                                             "block_threads * unroll <= 256", "block_threads * unroll <= 4096"));
  const CommandRun run = hone({"check", path("axpy.json")});
  EXPECT_EQ(run.code, 4);
  EXPECT_THAT(run.err, Names("no policy is valid", "3 of them", "2048 threads", "1024", "1 of them", "where"));
}

TEST_F(KernelFile, ElementsOfABlockThatOverflowAreNoPolicy) {
  // 64 and 128 threads of them are 64 and 128 elements modulo 2^64.
  for (const char* elements : {"4611686018427387905", "unroll * 9223372036854775807"}) {
    write_file(folder_ / "axpy.json", replaced(kKernel, "\"elements_per_thread\": \"unroll\"",
                                               std::string("\"elements_per_thread\": \"") + elements + '"'));
    const CommandRun run = hone({"check", path("axpy.json")});
    EXPECT_EQ(run.code, 4) << run.out;
    EXPECT_THAT(run.err, Names("elements_per_thread", elements, "overflows"));
    EXPECT_THAT(run.err, Not(HasSubstr("elements a block")));
  }
}

#ifdef HONE_WITH_TOML
/// With a few of its blocks: each policy is compiled for a check.
TEST_F(KernelFile, TheExamplesAreRight) {
  const std::filesystem::path folder = std::filesystem::path(HONE_EXAMPLES_FOLDER) / "kernels";
  std::filesystem::copy_file(folder / "axpy.cu", path("axpy.cu"), std::filesystem::copy_options::overwrite_existing);
  std::string text = content(folder / "axpy.toml");
  // Some of the values: each policy is compiled.
  for (const auto& [list, some] : {std::pair{"block_threads = [", "256, 96]"}, {"unroll = [", "4, 1]"}}) {
    const std::size_t at = text.find(list);
    ASSERT_NE(at, std::string::npos) << list;
    text.replace(at, text.find(']', at) + 1 - at, std::string(list) + some);
  }
  write_file(folder_ / "axpy.toml", text);
  const CommandRun run = hone({"check", path("axpy.toml"), "--order", "reverse"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  for (const char* name : {"stencil.toml", "convolution.toml"})
    EXPECT_EQ(hone({"emit", (folder / name).string(), "--size", "64x64"}).code, 6);  // understood, and not tuned
}
#endif

}  // namespace
}  // namespace hone::tuner
