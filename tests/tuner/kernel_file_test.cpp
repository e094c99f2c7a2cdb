// Kernel files from the command line: tuned, run, explained, exchanged and written out.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/names.h"
#include "tests/tuner/kernel_file_fixture.h"
#include "tuner/explain/counters.h"

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
using testing::npy_file;
using testing::replaced;
using ::testing::StartsWith;
using testing::write_file;

TEST_F(KernelFile, IsTunedRunExplainedAndWrittenOut) {
  const CommandRun tuned = tune();
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_THAT(hone({"inspect"}).out, Names("axpy run f32", "tuned"));
  const CommandRun explained = hone({"explain", "--family", path("axpy.json"), "--size", "1000", "--all"});
  EXPECT_THAT(explained.out, Names("axpy run f32", "4 candidates", "64t x1")) << explained.err;

  // The process that --counters starts under Nsight Compute finds the kernel by its file.
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

  for (const std::vector<std::string>& words : {std::vector<std::string>{"emit", path("axpy.json")},
                                                std::vector<std::string>{"explain", "--family", path("axpy.json")}}) {
    std::vector<std::string> args = words;
    args.insert(args.end(), {"--size", "1000", "--device", "nosuch"});
    const CommandRun other = hone(args);
    EXPECT_EQ(other.code, 6);
    EXPECT_THAT(other.err, Names("cache.sqlite", "--device nosuch", "host"));
    EXPECT_THAT(other.err, Not(HasSubstr("hone tune")));
  }
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

  // The winner of this kernel is that of one with the parameters of the trials.
  write_file(folder_ / "tried.json", as("kernel-tuner").out);
  write_file(folder_ / "again.json",
             replaced(kKernel, R"({"block_threads": [64, 128], "unroll": [1, 2]})", "\"tried.json\""));
  const CommandRun found = hone({"explain", "--family", path("again.json"), "--size", "1000", "--all"});
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out, Names("axpy run f32", "4 candidates")) << found.err;
  EXPECT_THAT(found.out, Not(HasSubstr("Stale")));

  write_file(folder_ / "empty.json", " \n");
  write_file(folder_ / "imports_nothing.json",
             replaced(kKernel, R"({"block_threads": [64, 128], "unroll": [1, 2]})", R"("empty.json")"));
  EXPECT_THAT(hone({"tune", path("imports_nothing.json")}).err, Names(path("empty.json"), "is empty", "tune_params"));
  // As Kernel Tuner leaves it when it is interrupted.
  write_file(folder_ / "space.json", R"({"kernel_name": "axpy",
"tune_params": {"block_threads": [32, 64, 96], "unroll": [1]}, "cache": {"32,1": {"time": 1},)");
  write_file(folder_ / "taken.json",
             replaced(kKernel, R"({"block_threads": [64, 128], "unroll": [1, 2]})", "\"space.json\""));
  EXPECT_THAT(hone({"check", path("taken.json"), "--order", "forward"}).out, Names("3 policies", "no check"));
}

TEST_F(KernelFile, AnEditCountsFromTheNextCommandOn) {
  const std::vector<std::string> check{"check", path("axpy.json"), "--order", "forward"};
  EXPECT_THAT(hone(check).out, Names("4 policies"));
  write_file(folder_ / "axpy.json", replaced(kKernel, "[64, 128]", "[64, 512]"));  // as long as before
  EXPECT_THAT(hone(check).out, Names("2 policies"));
  write_file(folder_ / "axpy.cu", replaced(kSource, "if (i < n)", "if (i > n)"));
  EXPECT_EQ(hone(check).code, 1);
}

TEST_F(KernelFile, AWinnerByTimeIsNotWrittenOutAsOneByEnergy) {
  ASSERT_EQ(tune().code, 0);
  const CommandRun run = hone({"emit", path("axpy.json"), "--size", "1000", "--objective", "energy"});
  EXPECT_EQ(run.code, 6);
  EXPECT_THAT(run.err, Names("by energy", "hone tune", "--objective energy"));
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
    const std::string command = std::string(HONE_NVCC) + standard + " -arch=sm_90 -cubin -o " + path("out.cubin") +
                                " " + path("use.cu") + " > " + path("log") + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << content(folder_ / "log") << content(folder_ / "out.cu");
    EXPECT_EQ(content(folder_ / "log"), "");
  }
#else
  GTEST_SKIP() << "there is no nvcc";
#endif
}

TEST_F(KernelFile, IsTunedWhereThePathsAreNoUtf8) {
  const std::filesystem::path folder = folder_ / "h\xf6me", cache = folder / "\xff.sqlite";
  std::filesystem::create_directory(folder);
  write_file(folder / "axpy.cu", kSource);
  write_file(folder / "axpy.json", kKernel);
  const CommandRun run = hone({"tune", (folder / "axpy.json").string(), "--size", "1000", "--device", "host",
                               "--budget", "20s", "--cache", cache.string()});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(std::filesystem::exists(cache));
}

TEST_F(KernelFile, AKernelThatNeverReturnsStoresNothing) {
  write_file(folder_ / "axpy.cu",
             replaced(kSource, "if (i < n)", "while (x[0] == x[0]) __threadfence();\n    if (i < n)"));
  write_file(folder_ / "axpy.json", replaced(kKernel, R"("block_threads": [64, 128], "unroll": [1, 2])",
                                             R"("block_threads": [64], "unroll": [1])"));
  const CommandRun run = tune({"--patience", "1s"});
  EXPECT_NE(run.code, 0) << run.out;
  EXPECT_THAT(run.err, Names("axpy"));
  const std::size_t first = run.err.find("its process hung");
  EXPECT_LT(run.err.find('\n', first), run.err.find("its process hung", first + 1)) << "once in a line: " << run.err;
  EXPECT_THAT(hone({"inspect"}).out, Not(HasSubstr("axpy run")));
}

TEST_F(KernelFile, ADefaultPolicyThatEndsBadlyIsBlamedAsTheReference) {
  for (const auto& [statement, how] :
       {std::pair("while (block_threads == 64 && x[0] == x[0]) __threadfence();", "its process hung"),
        std::pair("if (block_threads == 64) *(volatile int*)8 = 1;", "address")}) {
    write_file(folder_ / "axpy.cu", replaced(kSource, "if (i < n)", std::string(statement) + "\n    if (i < n)"));
    write_file(folder_ / "axpy.json", replaced(kKernel, "\"unroll\": [1, 2]", "\"unroll\": [1]"));
    const CommandRun run = tune({"--patience", "5s"});
    EXPECT_EQ(run.code, 6) << run.out;
    EXPECT_THAT(run.err, Names("reference", how));
    EXPECT_THAT(run.err, Not(HasSubstr("block_threads=128")));
  }
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

TEST_F(KernelFile, WhereThereIsNoWinnerTheCommandThatTunesIsNamed) {
  ASSERT_EQ(tune().code, 0);
  const CommandRun run = hone({"explain", "--family", path("axpy.json"), "--size", "2^20", "--context", "graph"});
  EXPECT_EQ(run.code, 6);
  EXPECT_THAT(run.err, HasSubstr("hone tune " + path("axpy.json") + " --size 2^20 --context graph --cache"));
}

TEST_F(KernelFile, AWinnerOfTheSourceBeforeAnEditIsMarked) {
  ASSERT_EQ(tune().code, 0);
  const std::vector<std::string> explain{"explain", "--family", path("edited.json"), "--size", "1000"};
  write_file(folder_ / "axpy.cu", replaced(kSource, "a * x[i]", "x[i] * a"));
  write_file(folder_ / "edited.json", kKernel);  // a process reads each file once
  const CommandRun stale = hone(explain);
  EXPECT_EQ(stale.code, 0) << stale.err;
  EXPECT_THAT(stale.out, StartsWith("Stale: "));
  EXPECT_THAT(stale.out, HasSubstr("hone tune " + path("edited.json") + " --size 1000"));
  EXPECT_THAT(hone({"inspect"}).out, Not(HasSubstr("source")));

  ASSERT_EQ(hone({"tune", path("edited.json"), "--size", "1000", "--device", "host"}).code, 0);
  EXPECT_THAT(hone(explain).out, Not(HasSubstr("Stale")));
  const nlohmann::json all = nlohmann::json::parse(hone({"inspect", "--json"}).out);
  ASSERT_EQ(all["winners"].size(), 2u);
  const std::string table = hone({"inspect"}).out;
  for (const auto& winner : all["winners"])
    EXPECT_THAT(table, HasSubstr(winner["toolchain"]["family_digest"].get<std::string>().substr(0, 7)));
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

}  // namespace
}  // namespace hone::tuner
