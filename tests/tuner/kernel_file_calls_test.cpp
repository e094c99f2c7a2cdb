// hone run with kernel files: calls that do not fit are refused, and indices are checked.
#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/names.h"
#include "tests/tuner/kernel_file_fixture.h"

namespace hone::tuner {
namespace {

using testing::CommandRun;
using testing::content;
using ::testing::HasSubstr;
using testing::KernelFile;
using testing::kSource;
using testing::kKernel;
using test::Names;
using ::testing::Not;
using testing::npy_file;
using testing::replaced;
using testing::run_hone;
using testing::write_file;

/// An environment whose sessions have this cache file and say nothing of untuned calls themselves.
Environment with_cache(const std::string& cache) {
  Environment environment;
  environment.session_options = [cache] {
    SessionOptions options;
    options.cache_path = cache;
    options.report_untuned = [](std::string_view) {};
    return options;
  };
  return environment;
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
  EXPECT_THAT(refusal({x, "-o", out}), Names("1 input file is given", "x, y"));
  EXPECT_THAT(refusal({x, x}), Names("0 outputs", "y"));
  EXPECT_THAT(refusal({x, y, "-o", out, "--set", "a=1"}), Names("y.npy", "2 elements", "has 3"));
  EXPECT_THAT(refusal({x, x, "-o", out}), Names("--set a="));
  EXPECT_THAT(refusal({x, x, "-o", out, "--set", "b=1"}), Names("b=1", "a"));
  EXPECT_THAT(refusal({"-", "-", "-o", out, "--set", "a=1"}), Names("standard input", "twice"));
  const CommandRun untuned = hone({"run", kernel, x, x, "-o", out, "--set", "a=1", "--device", "host", "--on-miss",
                                   "error"});
  EXPECT_EQ(untuned.code, 6);
  EXPECT_THAT(untuned.err, HasSubstr("hone tune " + kernel + " --size 3 --device host --cache "));
  const std::string only_read = path("only_read.sqlite");
  const CommandRun unstored = run_hone({"run", kernel, x, x, "-o", out, "--set", "a=1", "--device", "host", "--on-miss",
                                        "error", "--cache", "ro:" + only_read});
  EXPECT_EQ(unstored.code, 6);
  EXPECT_THAT(unstored.err, Names("hone tune " + kernel + " --size 3", "can be used"));
  EXPECT_THAT(unstored.err, Not(HasSubstr(only_read)));
  write_file(folder_ / "wide.npy", npy_file<double>("<f8", {1, 2, 3}));
  const std::string wide = refusal({x, path("wide.npy"), "-o", out, "--set", "a=1"});
  EXPECT_THAT(wide, Names("wide.npy", "f64", "argument y", "f32"));
  EXPECT_THAT(wide, Not(HasSubstr("--dtype")));
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(KernelFile, OutputsThatWouldOverwriteEachOtherAreRefused) {
  write_file(folder_ / "x.npy", npy_file<float>("<f4", {1, 2, 3}));
  write_file(folder_ / "axpy.cu", replaced(kSource, "const float* x", "float* x"));
  write_file(folder_ / "both.json", replaced(kKernel, R"("in": "x")", R"("inout": "x")"));
  const auto run = [&](const std::string& one, const std::string& other) {
    return hone({"run", path("both.json"), path("x.npy"), path("x.npy"), "-o", one, "-o", other, "--set", "a=1",
                 "--device", "host", "--on-miss", "error"});
  };
  for (const char* const other : {"-", "/dev/stdout"}) {
    EXPECT_EQ(run("-", other).code, 2);
    EXPECT_THAT(run("-", other).err, Names("standard output", "twice"));
  }
  const CommandRun file = run(path("out.npy"), (folder_ / "." / "out.npy").string());
  EXPECT_EQ(file.code, 2);
  EXPECT_THAT(file.err, Names("out.npy", "twice"));
  EXPECT_EQ(run("/dev/null", "/dev/null").code, 6) << "it has no winner, and is no mistake";
  EXPECT_EQ(run("-", path("out.npy")).code, 6);
}

TEST_F(KernelFile, ArraysWithoutElementsGiveOneWithoutElements) {
  write_file(folder_ / "empty.npy", npy_file<float>("<f4", {}));
  const CommandRun run = hone({"run", path("axpy.json"), path("empty.npy"), path("empty.npy"), "-o", path("out.npy"),
                               "--set", "a=1", "--device", "host", "--on-miss", "error"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(content(path("out.npy")), content(path("empty.npy")));
}

TEST_F(KernelFile, NumbersThatAScalarCannotBeAreRefused) {
  write_file(folder_ / "x.npy", npy_file<float>("<f4", {1, 2, 3}));
  std::string kernel = path("axpy.json");
  const auto refusal = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> args{"run", kernel, path("x.npy"), path("x.npy"), "-o", path("out.npy")};
    for (const std::string& setting : settings) args.insert(args.end(), {"--set", setting});
    const CommandRun run = hone(args);
    EXPECT_EQ(run.code, 2) << settings.front();
    return run.err;
  };
  for (const char* const setting : {"a=", "a=1e400", "a=-1e999", "a=1e39", "a=2x", "a= 2", "a=--2", "a=0x"})
    EXPECT_THAT(refusal({setting}), Names(setting, "f32"));
  // A kernel file may have these as a 'value'.
  for (const char* const number : {"inf", "-inf", "nan", "0x1.8p3", "+1", "1_000"}) {
    const CommandRun run = hone({"run", kernel, path("x.npy"), path("x.npy"), "-o", path("out.npy"), "--device", "host",
                                 "--on-miss", "error", "--set", std::string("a=") + number});
    EXPECT_EQ(run.code, 6) << "it has no winner, and is no mistake: " << run.err;
    const std::string valued = path(std::string(number) + ".json");
    const std::string value = R"("a", "type": "f32", "value": ")" + std::string(number) + '"';
    write_file(valued, replaced(kKernel, R"("a", "type": "f32")", value));
    EXPECT_EQ(hone({"emit", valued, "--size", "64"}).code, 6) << number;
  }
  EXPECT_THAT(refusal({"a=1", "a=2"}), Names("a=2", "twice"));
  kernel = path("unsigned.json");
  write_file(kernel, replaced(kKernel, R"("a", "type": "f32")", R"("a", "type": "u32")"));
  for (const char* const setting : {"a=1.5", "a=-1", "a=4294967296", "a=9007199254740993"})
    EXPECT_THAT(refusal({setting}), Names(setting, "u32", "integers"));
  EXPECT_THAT(refusal({"a=inf"}), Names("u32", "inf"));
  kernel = path("long.json");
  write_file(kernel, replaced(kKernel, R"("a", "type": "f32")", R"("a", "type": "i64")"));
  for (const char* const setting : {"a=9007199254740993", "a=-9007199254740993", "a=-9223372036854775808"})
    EXPECT_THAT(refusal({setting}), Names(setting, "9007199254740991"));
}

TEST_F(KernelFile, ARunWithoutAWinnerSaysHowToTuneTheFile) {
  write_file(folder_ / "x.npy", npy_file<float>("<f4", {1, 2, 3}));
  const std::string x = path("x.npy");
  const Environment environment = with_cache(path("cache.sqlite"));
  const CommandRun run = run_hone(
      {"run", path("axpy.json"), x, x, "--set", "a=2", "-o", path("out.npy"), "--device", "host"}, environment);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("hone tune " + path("axpy.json") + " --size 3 --device host --cache"));
}

TEST_F(KernelFile, ARunDoesNotSendTuningsToACacheThatCannotBeUsed) {
  write_file(folder_ / "x.npy", npy_file<float>("<f4", {1, 2, 3}));
  write_file(folder_ / "junk.sqlite", "a letter");
  const std::string x = path("x.npy"), junk = path("junk.sqlite");
  const Environment environment = with_cache(junk);
  const CommandRun run = run_hone(
      {"run", path("axpy.json"), x, x, "--set", "a=2", "-o", path("out.npy"), "--device", "host"}, environment);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, Names("warning", junk, "hone tune " + path("axpy.json") + " --size 3"));
  EXPECT_THAT(run.err, Not(::testing::ContainsRegex("hone tune [^\n]*--cache")));
}

TEST_F(KernelFile, ARunThatFailsNamesTheFile) {
  write_file(folder_ / "x.npy", npy_file<float>("<f4", {1, 2, 3}));
  const auto run = [&](const std::string& statement) {
    write_file(folder_ / "axpy.cu", "#ifdef HONE_HOST_DEVICE\nextern \"C\" void abort();\n#endif\n" +
                                        replaced(kSource, "if (i < n)", statement + " if (i < n)"));
    const std::string x = " " + path("x.npy");
    const std::string command = HONE_COMMAND " run " + path("axpy.json") + x + x + " -o " + path("out.npy") +
                                " --set a=2 --device host --cache off 2>&1";
    std::FILE* const pipe = popen(command.c_str(), "r");
    std::string said;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) said += static_cast<char>(c);
    EXPECT_NE(pclose(pipe), 0);
    return said;
  };
  EXPECT_THAT(run("__trap();"), Names(path("axpy.json"), "__trap()"));
  EXPECT_THAT(run("abort();"), Names("axpy.json", "signal 6"));
}

TEST_F(KernelFile, OutputsReplaceNoneOfItsFiles) {
  write_file(folder_ / "head.h", "#define PLUS +\n");
  write_file(folder_ / "axpy.cu", "#include \"head.h\"\n" + replaced(kSource, "x[i] + y", "x[i] PLUS y"));
  write_file(folder_ / "reference.cu", R"(extern "C" __global__ void plain(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
})");
  write_file(folder_ / "axpy.json",
             replaced(kKernel, "\"where\"", R"("reference": {"file": "reference.cu"}, "where")"));
  write_file(folder_ / "x.npy", npy_file<float>("<f4", {1, 2, 3}));
  const std::string x = path("x.npy");
  const auto run = [&](const std::string& output) {
    return hone({"run", path("axpy.json"), x, x, "--set", "a=2", "-o", output, "--device", "host"});
  };
  ASSERT_EQ(run("-").code, 0) << run("-").err;
  std::filesystem::create_symlink("axpy.cu", folder_ / "link");
  for (const char* const name : {"axpy.cu", "axpy.json", "head.h", "reference.cu", "link"}) {
    const std::string before = content(folder_ / name);
    const CommandRun emitted = hone({"emit", path("axpy.json"), "--size", "3", "-o", path(name)});
    for (const CommandRun& refused : {run(path(name)), emitted}) {
      EXPECT_EQ(refused.code, 2) << refused.err;
      EXPECT_THAT(refused.err, Names(path(name), "another file"));
    }
    EXPECT_EQ(content(folder_ / name), before);
  }
  const CommandRun refused = run(x);
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_THAT(refused.err, Names(x, "another file"));
}

TEST_F(KernelFile, WithoutACacheARunSaysWhatTheCommandCanDo) {
  write_file(folder_ / "x.npy", npy_file<float>("<f4", {1, 2, 3}));
  using Words = std::vector<std::string>;
  const std::string x = path("x.npy");
  const Words run_words{"run", path("axpy.json"), x, x, "--set", "a=2", "-o", path("out.npy")};
  for (const Words& call : {run_words, Words{"reduce", x}}) {
    Words args = call;
    args.insert(args.end(), {"--device", "host", "--cache", "off", "--on-miss", "error"});
    const CommandRun run = hone(args);
    EXPECT_EQ(run.code, 6);
    EXPECT_THAT(run.err, Names("--on-miss tune", "hone tune"));
    EXPECT_THAT(run.err, Not(HasSubstr("Session::tune()")));
  }
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

}  // namespace
}  // namespace hone::tuner
