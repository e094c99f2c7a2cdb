// Kernel files from the command line: tuned, run, checked, explained and written out; and what is wrong with bad ones.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "tests/support/names.h"
#include "tests/tuner/support.h"
#include "tuner/check/check_policies.h"
#include "tuner/explain/counters.h"
#include "tuner/problems/problem_selection.h"

namespace hone::tuner {
namespace {

using test::Names;
using testing::CommandRun;
using ::testing::HasSubstr;
using testing::isolated_environment;
using ::testing::Not;
using testing::npy_file;
using testing::run_hone;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::write_file;

constexpr std::string_view kSource = R"(extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
  for (int u = 0; u < unroll; ++u) {
    const int i = (blockIdx.x * unroll + u) * block_threads + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
  }
}
)";

constexpr std::string_view kKernel = R"({
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

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string result(text);
  const std::size_t at = result.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return result.replace(at, what.size(), by);
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class KernelFile : public ::testing::Test {
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

  /// The complaint of hone check about a kernel file, without the folder's name.
  std::string complaint(std::string_view name, const std::string& kernel, std::string_view source = kSource) {
    write_file(folder_ / "axpy.cu", source);
    write_file(folder_ / name, kernel);
    const CommandRun run = hone({"check", path(name)});
    EXPECT_EQ(run.code, 4) << run.out;
    const std::size_t at = run.err.find(name);
    return at == std::string::npos ? run.err : run.err.substr(at);
  }

  TemporaryFolder folder_;
};

TEST_F(KernelFile, IsTunedRunExplainedAndWrittenOut) {
  const CommandRun tuned = tune();
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_THAT(hone({"inspect"}).out, Names("axpy run f32", "tuned"));
  const CommandRun explained = hone({"explain", "--family", path("axpy.json"), "--size", "1000", "--all"});
  EXPECT_THAT(explained.out, Names("axpy run f32", "4 candidates", "64t x1")) << explained.err;

  // What --counters starts under Nsight Compute finds the kernel by its file.
  const std::string cache = path("cache.sqlite");
  EXPECT_EQ(run_counted(std::vector<std::string>{cache, "1", "host", path("axpy.json")}), 0);
  EXPECT_NE(run_counted(std::vector<std::string>{cache, "1", "host"}), 0);
  EXPECT_THAT(hone({"explain", "--family", "axpy", "--size", "1000", "--counters"}).err,
              Names("unknown kernel family 'axpy'", "named by its file", "axpy.toml"));

  write_file(folder_ / "x.npy", npy_file<float>("<f4", {1, 2, 3}));
  write_file(folder_ / "y.npy", npy_file<float>("<f4", {10, 20, 30}));
  const CommandRun run = hone({"run", path("axpy.json"), path("x.npy"), path("y.npy"), "--set", "a=0.5", "-o",
                               path("out.npy"), "--device", "host"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(content(folder_ / "out.npy"), npy_file<float>("<f4", {10.5f, 21, 31.5f}));

  const CommandRun emitted = hone({"emit", path("axpy.json"), "--size", "1000"});
  ASSERT_EQ(emitted.code, 0) << emitted.err;
  EXPECT_THAT(emitted.out, Names("#define unroll", "launch_axpy(float a, const float* x, float* y, long long n", "µs"));
}

TEST_F(KernelFile, AWinnerByEnergyServesNobodyElse) {
  const CommandRun refused = tune({"--objective", "energy"});
  EXPECT_EQ(refused.code, 3) << refused.out;
  EXPECT_THAT(refused.err, Names("least energy was asked for", "host", "HONE_NVML", "tune by time"));
  EXPECT_THAT(tune({"--objective", "power"}).err, Names("power", "time", "energy"));

  setenv("HONE_NVML", HONE_FAKE_NVML, 1);
  const CommandRun tuned = tune({"--objective", "energy"});
  unsetenv("HONE_NVML");
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const std::vector<std::string> explain{"explain", "--family", path("axpy.json"), "--size", "1000"};
  EXPECT_EQ(hone(explain).code, 6) << "there is no winner by time";
  EXPECT_EQ(hone({"emit", path("axpy.json"), "--size", "1000"}).code, 6);
  std::vector<std::string> by_energy = explain;
  by_energy.insert(by_energy.end(), {"--objective", "energy"});
  EXPECT_THAT(hone(by_energy).out, Names("axpy run f32 by energy", "µJ a call, the least", "idle power", "350 W"));
  EXPECT_THAT(hone({"inspect"}).out, Names("axpy run f32 by energy", "tuned"));
  EXPECT_THAT(hone({"inspect", "1"}).out, Names("objective", "energy", "µJ", "350 W"));
  EXPECT_THAT(hone({"inspect", "--objective", "time"}).out, Not(HasSubstr("axpy run f32")));

  ASSERT_EQ(tune().code, 0) << "the same problem by time is another one";
  EXPECT_THAT(hone(explain).out, Not(HasSubstr("by energy")));
  const nlohmann::json all = nlohmann::json::parse(hone({"inspect", "--json"}).out);
  ASSERT_EQ(all["winners"].size(), 2u);
  EXPECT_NE(all["winners"][0]["problem"]["objective"], all["winners"][1]["problem"]["objective"]);
}

TEST_F(KernelFile, TrialsAndParametersAreExchangedWithKernelTuner) {
  ASSERT_EQ(tune({"--exhaustive"}).code, 0);
  const std::vector<std::string> explain{"explain", "--family", path("axpy.json"), "--size", "1000", "--format"};
  const auto as = [&](const std::string& format) {
    std::vector<std::string> args = explain;
    args.push_back(format);
    return hone(args);
  };
  const nlohmann::json cache = nlohmann::json::parse(as("kernel-tuner").out);
  EXPECT_EQ(cache["tune_params_keys"], (std::vector<std::string>{"block_threads", "unroll", "max_blocks"}));
  EXPECT_EQ(cache["cache"].size(), 4u);
  for (const auto& [key, entry] : cache["cache"].items()) {
    EXPECT_THAT(key, StartsWith(std::to_string(entry["block_threads"].get<int>()) + ","));
    EXPECT_GT(entry["time"].get<double>(), 0);
  }
  const nlohmann::json t4 = nlohmann::json::parse(as("t4").out);
  EXPECT_EQ(t4["results"].size(), 4u);
  EXPECT_EQ(t4["results"][0]["invalidity"], "correct");
  EXPECT_THAT(as("t5").err, Names("t5", "kernel-tuner", "t4"));

  // As Kernel Tuner leaves it when it is interrupted.
  write_file(folder_ / "space.json", R"({"kernel_name": "axpy",
"tune_params": {"block_threads": [32, 64, 96], "unroll": [1]}, "cache": {"32,1": {"time": 1},)");
  write_file(folder_ / "taken.json",
             replaced(kKernel, R"({"block_threads": [64, 128], "unroll": [1, 2]})", "\"space.json\""));
  EXPECT_THAT(hone({"check", path("taken.json"), "--order", "forward"}).out, Names("3 policies", "no check"));
}

TEST_F(KernelFile, WhatIsWrittenOutCompilesWithoutHone) {
#ifdef HONE_NVCC
  ASSERT_EQ(tune().code, 0);
  ASSERT_EQ(hone({"tune", "reduce", "--op", "sum", "--dtype", "f32", "--size", "1000", "--device", "host"}).code, 0);
  const std::vector<std::vector<std::string>> problems{{path("axpy.json"), "--size", "1000"},
                                                       {"reduce", "--op", "sum", "--dtype", "f32", "--size", "1000"}};
  for (const std::vector<std::string>& problem : problems) {
    std::vector<std::string> args{"emit", "-o", path("out.cu")};
    args.insert(args.end(), problem.begin(), problem.end());
    const CommandRun run = hone(args);
    ASSERT_EQ(run.code, 0) << run.err;
    write_file(folder_ / "use.cu", "#include \"out.cu\"\n");
    const std::string standard = problem.front() == "reduce" ? " -std=c++20" : "";
    EXPECT_EQ(content(folder_ / "out.cu").find("nvcc -std=c++20") != std::string::npos, !standard.empty());
    const std::string command = std::string(HONE_NVCC) + standard + " -arch=sm_90 -cubin -o " + path("out.cubin") + " " +
                                path("use.cu") + " > " + path("log") + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << content(folder_ / "log") << content(folder_ / "out.cu");
  }
#else
  GTEST_SKIP() << "there is no nvcc";
#endif
}

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

TEST_F(KernelFile, ARunWithoutAWinnerSaysHowToTuneTheFile) {
  write_file(folder_ / "x.npy", npy_file<float>("<f4", {1, 2, 3}));
  const std::string x = path("x.npy");
  Environment environment;
  environment.session_options = [cache = path("cache.sqlite")] {
    SessionOptions options;
    options.cache_path = cache;
    options.report_untuned = [](std::string_view) {};
    return options;
  };
  const CommandRun run = run_hone(
      {"run", path("axpy.json"), x, x, "--set", "a=2", "-o", path("out.npy"), "--device", "host"}, environment);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("hone tune '" + path("axpy.json") + "' --size 3 --cache"));
}

TEST_F(KernelFile, NoPolicyIsCheckedAfterOneThatTookLongAndFailed) {
  write_file(folder_ / "axpy.cu", replaced(kSource, "if (i < n)", "if (i < n || u == 1)"));
  const Problem problem = list_problems({.family = path("axpy.json"), .sizes = "1003"}).front();
  const PolicyChecks checks = check_policies(problem, {HostOrder{}}, std::chrono::milliseconds(0));
  EXPECT_EQ(checks.run.size(), 2u) << "the first passes";
  EXPECT_EQ(checks.not_run, 2);
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

/// The kernel file with a NumPy expression for the reference, which begins in line 12, column 26.
std::string with_numpy(std::string_view expression) {
  return replaced(kKernel, "\n  ]\n}", "\n  ],\n  \"reference\": {\"numpy\": \"" + std::string(expression) + "\"}\n}");
}

bool has_numpy() {
  return std::system("${HONE_PYTHON:-python3} -c 'import numpy' > /dev/null 2>&1") == 0;
}

TEST_F(KernelFile, TheReferenceMayBeANumPyExpression) {
  if (!has_numpy()) GTEST_SKIP() << "there is no Python with NumPy; HONE_PYTHON may name one";
  write_file(folder_ / "right.json", with_numpy("a * x + y"));
  const CommandRun right = hone({"check", path("right.json"), "--order", "forward"});
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  write_file(folder_ / "axpy.json", with_numpy("np.add(a * x, y)"));
  EXPECT_EQ(tune().code, 0);

  write_file(folder_ / "wrong.json", with_numpy("1.01 * a * x + y"));
  const CommandRun wrong = hone({"check", path("wrong.json"), "--order", "forward"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.out, Names("4 of 4 policies", "y[0]", "reference"));
}

TEST_F(KernelFile, ComplaintsOfNumPyNameThePlaceOfTheExpression) {
  if (!has_numpy()) GTEST_SKIP() << "there is no Python with NumPy; HONE_PYTHON may name one";
  const auto complaint_of = [&](const char* name, const char* expression) {
    write_file(folder_ / name, with_numpy(expression));
    const CommandRun run = hone({"check", path(name), "--order", "forward"});
    EXPECT_EQ(run.code, 4) << expression;
    return run.err;
  };
  EXPECT_THAT(complaint_of("a.json", "a * z + y"), Names("a.json:12:26: reference.numpy", "NameError", "'z'"));
  EXPECT_THAT(complaint_of("b.json", "a * x +"), Names("b.json:12:26", "SyntaxError"));
  EXPECT_THAT(complaint_of("c.json", "x[:7]"), Names("c.json:12:26", "y has 1003 elements", "7"));
  EXPECT_THAT(complaint_of("d.json", "(x, y)"), Names("d.json:12:26", "2 results", "1 arrays"));
  EXPECT_THAT(complaint_of("e.json", "open('/dev/null')"), Names("e.json:12:26", "NameError", "'open'"));
  write_file(folder_ / "axpy.json", with_numpy("a * z + y"));
  const CommandRun tuned = tune();
  EXPECT_NE(tuned.code, 0);
  EXPECT_THAT(tuned.err, Names("axpy.json:12:26", "NameError"));
  EXPECT_THAT(hone({"inspect"}).out, Not(HasSubstr("axpy run")));
}

TEST_F(KernelFile, WhereThereIsNoPythonOrNoNumPyTheErrorSaysSo) {
  write_file(folder_ / "numpy.json", with_numpy("a * x + y"));
  write_file(folder_ / "numpy.py", "raise ImportError('not here')\n");
  const char* const before = std::getenv("HONE_PYTHON");
  const std::string python = before ? before : "";
  const auto complaint_with = [&](const char* variable, const std::string& value) {
    setenv(variable, value.c_str(), 1);
    const CommandRun run = hone({"check", path("numpy.json"), "--order", "forward"});
    EXPECT_NE(run.code, 0);
    return run.err;
  };
  if (std::system("${HONE_PYTHON:-python3} -c pass > /dev/null 2>&1") == 0) {
    EXPECT_THAT(complaint_with("PYTHONPATH", path("")), Names("NumPy", "not here", "pip", "HONE_PYTHON"));
    unsetenv("PYTHONPATH");
  }
  EXPECT_THAT(complaint_with("HONE_PYTHON", path("no_python")), Names("no_python", "NumPy", "HONE_PYTHON"));
  if (before) setenv("HONE_PYTHON", python.c_str(), 1);
  else unsetenv("HONE_PYTHON");
}

TEST_F(KernelFile, AKernelThatNeverReturnsStoresNothing) {
  write_file(folder_ / "axpy.cu",
             replaced(kSource, "if (i < n)", "while (x[0] == x[0]) __threadfence();\n    if (i < n)"));
  write_file(folder_ / "axpy.json", replaced(kKernel, R"("block_threads": [64, 128], "unroll": [1, 2])",
                                             R"("block_threads": [64], "unroll": [1])"));
  const CommandRun run = tune({"--patience", "1s"});
  EXPECT_NE(run.code, 0) << run.out;
  EXPECT_THAT(run.err, Names("axpy"));
  EXPECT_THAT(hone({"inspect"}).out, Not(HasSubstr("axpy run")));
}

TEST_F(KernelFile, ErrorsNameFileLineAndColumn) {
  EXPECT_THAT(complaint("a.json", replaced(kKernel, "\"unroll\": [1, 2]", "\"unroll\": [1, 2], \"pad\": [1]")),
              StartsWith("a.json:3:64: the kernel 'axpy' has the parameter pad, which its source does not use"));
  EXPECT_THAT(
      complaint("b.json", replaced(kKernel, "threads * unroll", "threads * unrol")),
      StartsWith("b.json:4:13: the kernel 'axpy': where 'block_threads * unrol <= 256', column 17: 'unrol' is"));
  EXPECT_THAT(complaint("c.json", replaced(kKernel, "\"where\"", "\"were\"")),
              StartsWith("c.json:4:3: a kernel has no field 'were' (did you mean 'where'?)"));
  EXPECT_THAT(complaint("d.json", replaced(kKernel, "\"x\", \"type\": \"f32\"", "\"x\", \"type\": \"f33\"")),
              StartsWith("d.json:8:25: unknown dtype 'f33'"));
  EXPECT_THAT(complaint("e.json", replaced(kKernel, "axpy.cu", "nothing.cu")), StartsWith("e.json:2:11: "));
  EXPECT_THAT(complaint("f.json", replaced(kKernel, "{\"in\": \"x\"", "{\"elements\": 3")),
              StartsWith("f.json:8:5: an argument has one of in, out, inout, scalar, extent"));
  EXPECT_THAT(complaint("g.json", replaced(kKernel, "[64, 128]", "[64, 64]")),
              ::testing::AllOf(StartsWith("g.json:3:18: "), Names("64", "twice", "block_threads")));
  EXPECT_THAT(complaint("h.json", replaced(kKernel, "\"x\"", "\"y\"")),
              ::testing::AllOf(StartsWith("h.json:8:12: "), Names("'y'", "twice")));
  EXPECT_THAT(complaint("i.json", replaced(kKernel, "\"in\": \"x\"", "\"in\": \"x\", \"value\": 3")),
              ::testing::AllOf(StartsWith("i.json:8:17: "), Names("'value'", "scalars", "'x'")));
  EXPECT_THAT(complaint("j.json", replaced(kKernel, "\"in\": \"x\"", "\"in\": \"x\", \"indices_below\": \"n\"")),
              Names("j.json", "indices_below", "'x'", "f32"));
  EXPECT_THAT(complaint("k.json", replaced(kKernel, "\"type\": \"i32\"", "\"type\": 32")),
              StartsWith("k.json:10:29: 'type' is a number"));
  EXPECT_THAT(complaint("l.json", replaced(kKernel, "thread\": \"unroll\"", "thread\": \"0 * unroll\"")),
              ::testing::AllOf(StartsWith("l.json:5:26: "), Names("0 * unroll", "0")));
}

TEST_F(KernelFile, APolicyWithoutALaunchIsNotTried) {
  write_file(folder_ / "axpy.json", replaced(replaced(kKernel, "thread\": \"unroll\"",
                                                      "thread\": \"2 / (unroll - 1)\""),
                                             "[1, 2]", "[1, 3]"));
  const CommandRun run = tune();
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("t x3"));
}

TEST_F(KernelFile, ArgumentsThatAreNotTheKernelsStoreNothing) {
  write_file(folder_ / "axpy.json", replaced(kKernel, "{\"scalar\": \"a\", \"type\": \"f32\"},", ""));
  const CommandRun run = tune();
  EXPECT_EQ(run.code, 6) << run.out;
  EXPECT_THAT(run.err, Names("axpy.json:6:16: ", "axpy", "4 parameters", "3 arguments"));

  write_file(folder_ / "x.npy", npy_file<float>("<f4", {1, 2, 3}));
  const CommandRun call = hone({"run", path("axpy.json"), path("x.npy"), path("x.npy"), "-o", path("out.npy")});
  EXPECT_EQ(call.code, 4) << call.out;
  EXPECT_THAT(call.err, Names("axpy.json:6:16: ", "4 parameters", "3 arguments"));
  EXPECT_THAT(hone({"inspect"}).out, Not(HasSubstr("axpy run")));
}

TEST_F(KernelFile, CallsThatDoNotFitAreRefused) {
  write_file(folder_ / "x.npy", npy_file<float>("<f4", {1, 2, 3}));
  write_file(folder_ / "y.npy", npy_file<float>("<f4", {1, 2}));
  const std::string kernel = path("axpy.json"), x = path("x.npy"), y = path("y.npy"), out = path("out.npy");
  const auto refusal = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"run", kernel});
    const CommandRun run = hone(args);
    EXPECT_EQ(run.code, 2) << run.out;
    return run.err;
  };
  EXPECT_THAT(refusal({x, "-o", out}), Names("1 input files", "x, y"));
  EXPECT_THAT(refusal({x, x}), Names("0 outputs", "y"));
  EXPECT_THAT(refusal({x, y, "-o", out, "--set", "a=1"}), Names("y.npy", "2 elements", "has 3"));
  EXPECT_THAT(refusal({x, x, "-o", out}), Names("--set a="));
  EXPECT_THAT(refusal({x, x, "-o", out, "--set", "b=1"}), Names("b=1", "a"));
  const CommandRun untuned = hone({"run", kernel, x, x, "-o", out, "--set", "a=1", "--device", "host", "--on-miss",
                                   "error"});
  EXPECT_EQ(untuned.code, 6);
  EXPECT_THAT(untuned.err, HasSubstr("hone tune '" + kernel + "' --size 3"));
  write_file(folder_ / "empty.npy", npy_file<float>("<f4", {}));
  const std::string empty = path("empty.npy");
  EXPECT_THAT(refusal({empty, empty, "-o", out, "--set", "a=1"}), Names("empty.npy", "no elements"));
  write_file(folder_ / "wide.npy", npy_file<double>("<f8", {1, 2, 3}));
  const std::string wide = refusal({x, path("wide.npy"), "-o", out, "--set", "a=1"});
  EXPECT_THAT(wide, Names("wide.npy", "f64", "argument y", "f32"));
  EXPECT_THAT(wide, Not(HasSubstr("--dtype")));
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(KernelFile, IndicesOfACallAreLookedAt) {
  write_file(folder_ / "take.cu", R"(__global__ void take(const int* at, const int* x, int* y, int n) {
  const int i = blockIdx.x * block_threads + threadIdx.x;
  if (i < n) y[i] = x[at[i]];
})");
  write_file(folder_ / "take.json", R"({"file": "take.cu", "parameters": {"block_threads": [64]},
    "arguments": [{"in": "at", "type": "i32", "indices_below": "n"}, {"in": "x", "type": "i32"},
                  {"out": "y", "type": "i32"}, {"extent": "n", "type": "i32"}]})");
  write_file(folder_ / "x.npy", npy_file<int>("<i4", {10, 20, 30}));
  const auto taken = [&](std::vector<int> at) {
    write_file(folder_ / "at.npy", npy_file<int>("<i4", at));
    return hone({"run", path("take.json"), path("at.npy"), path("x.npy"), "-o", path("y.npy"), "--device", "host",
                 "--on-miss", "heuristic"});
  };
  for (const int wrong : {3, -1, 1 << 30}) {
    const CommandRun run = taken({2, wrong, 0});
    EXPECT_EQ(run.code, 2) << run.out;
    EXPECT_THAT(run.err, Names("at.npy", "element 1 of at is " + std::to_string(wrong), "indices_below", "0 to 2"));
  }
  const CommandRun right = taken({2, 1, 0});
  ASSERT_EQ(right.code, 0) << right.err;
  EXPECT_EQ(content(folder_ / "y.npy"), npy_file<int>("<i4", {30, 20, 10}));
}

TEST_F(KernelFile, WhereThereIsNoWinnerTheCommandThatTunesIsNamed) {
  ASSERT_EQ(tune().code, 0);
  const CommandRun run = hone({"explain", "--family", path("axpy.json"), "--size", "2^20", "--context", "graph"});
  EXPECT_EQ(run.code, 6);
  EXPECT_THAT(run.err, HasSubstr("hone tune '" + path("axpy.json") + "' --size 2^20 --context graph --cache"));
}

TEST_F(KernelFile, AWinnerOfTheSourceBeforeAnEditIsMarked) {
  ASSERT_EQ(tune().code, 0);
  const std::vector<std::string> explain{"explain", "--family", path("edited.json"), "--size", "1000"};
  write_file(folder_ / "axpy.cu", replaced(kSource, "a * x[i]", "x[i] * a"));
  write_file(folder_ / "edited.json", kKernel);  // a process reads each file once
  const CommandRun stale = hone(explain);
  EXPECT_EQ(stale.code, 0) << stale.err;
  EXPECT_THAT(stale.out, StartsWith("Stale: "));
  EXPECT_THAT(stale.out, HasSubstr("hone tune '" + path("edited.json") + "' --size 1000"));
  EXPECT_THAT(hone({"inspect"}).out, Not(HasSubstr("source")));

  ASSERT_EQ(hone({"tune", path("edited.json"), "--size", "1000", "--device", "host"}).code, 0);
  EXPECT_THAT(hone(explain).out, Not(HasSubstr("Stale")));
  const nlohmann::json all = nlohmann::json::parse(hone({"inspect", "--json"}).out);
  ASSERT_EQ(all["winners"].size(), 2u);
  const std::string table = hone({"inspect"}).out;
  for (const auto& winner : all["winners"])
    EXPECT_THAT(table, HasSubstr(winner["toolchain"]["family_digest"].get<std::string>().substr(0, 7)));
}

TEST_F(KernelFile, WhereNoPolicyIsValidTheReasonsAreCounted) {
  write_file(folder_ / "axpy.json", replaced(replaced(kKernel, "[64, 128]", "[2048, 4096]"),
                                             "block_threads * unroll <= 256", "block_threads * unroll <= 4096"));
  const CommandRun run = hone({"check", path("axpy.json")});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, Names("no policy is valid", "3 of them", "1 of them", "threads", "where"));
}

TEST_F(KernelFile, WhatIsWrittenOutTruncatesNothingAndLeavesNoMacro) {
  ASSERT_EQ(tune().code, 0);
  const std::string text = hone({"emit", path("axpy.json"), "--size", "1000"}).out;
  const std::size_t launch = text.find("launch_axpy");
  ASSERT_NE(launch, std::string::npos);
  EXPECT_LT(text.find("#undef unroll"), launch);
  EXPECT_LT(text.find("#undef block_threads"), launch);
  EXPECT_THAT(text, Names("n < 0", "static_cast<int>(n)) != n", "n_tiles > 2147483647"));
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
