// hone check: from a file to a report.
#include <gmock/gmock.h>
#include <hone/sdk/gpu_compiler.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "tests/support/names.h"
#include "tests/tuner/support.h"
#include "tuner/check/check_arguments.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using test::HasLine;
using test::Names;
using testing::CommandRun;
using testing::run_hone;
using testing::TemporaryFolder;
using testing::write_file;

class CheckCommand : public ::testing::Test {
 protected:
  CommandRun check(const std::string& source, std::vector<std::string> options) {
    write_file(folder_ / "kernel.cu", source);
    options.insert(options.begin(), {"check", (folder_ / "kernel.cu").string()});
    return run_hone(options);
  }

  /// "…/kernel.cu:3", as the file was given.
  std::string at_line(int line) const { return (folder_ / "kernel.cu").string() + ":" + std::to_string(line); }

  TemporaryFolder folder_;
};

constexpr char kScale[] = R"(// __global__ void not_this(int)
extern "C" __global__ void __launch_bounds__(256) scale(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
)";

TEST_F(CheckCommand, ARightKernelPasses) {
  const CommandRun run =
      check(kScale, {"--grid", "4", "--block", "256", "--arg", "f32[1000]=random", "--arg", "i32=1000"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, Names("kernel.cu", "scale", "NVRTC", "sm_90", "orders", "forward", "reverse", "random:1",
                             "no check", "found"));
}

TEST_F(CheckCommand, AnyNameOfAFolderIsTakenAndRepeated) {
  for (const std::string name : {"h\xf6me \xff", "new\nline", "a\"b\\c\td", "tri?\?/graph"}) {
    const std::filesystem::path file = folder_ / name / "kernel.cu";
    std::filesystem::create_directories(file.parent_path());
    write_file(file, kScale);
    const std::vector<std::string> options{"--order", "forward", "--block", "256", "--arg", "i32=256"};
    std::vector<std::string> words{"check", file.string(), "--arg", "f32[256]=iota"};
    words.insert(words.end(), options.begin(), options.end());
    const CommandRun right = run_hone(words);
    EXPECT_EQ(right.code, 0) << right.err;
    words[3] = "f32[255]=iota";
    const CommandRun wrong = run_hone(words);
    EXPECT_EQ(wrong.code, 1) << wrong.err;
    EXPECT_THAT(wrong.out, HasSubstr("to see it again: hone check '" + file.string() + "' "));
    // The program that looks up lines prints a line for each, and ?? where it knows none.
    const bool has_lines = name.find_first_of("\n?") == std::string::npos;
    EXPECT_THAT(wrong.out, HasSubstr(has_lines ? "kernel.cu:4" : "kernel.cu"));
  }
}

TEST_F(CheckCommand, TheFileMayComeBehindTheArguments) {
  write_file(folder_ / "kernel.cu", kScale);
  const CommandRun run = run_hone({"check", "--order", "forward", "--block", "256", "--arg", "f32[256]=iota", "--arg",
                                   "i32=256", (folder_ / "kernel.cu").string()});
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST_F(CheckCommand, ReportsResourcesAndOccupancy) {
  const CommandRun run = check(kScale, {"--block", "256", "--grid", "1", "--arg", "f32[256]=iota", "--arg", "i32=256"});
  if (run.out.find("not looked at") != std::string::npos) GTEST_SKIP() << run.out;
  EXPECT_THAT(run.out, ::testing::ContainsRegex("registers      [1-9][0-9]* a thread"));
  EXPECT_THAT(run.out, Names("0 bytes", "thread", "8 blocks", "256 threads", "SM", "2048", "2048 threads", "100 %"));
}

TEST_F(CheckCommand, CountsWhatTheSystemReservesOfSharedMemoryOnce) {
  // 44 KiB of the kernel and 1 of the system: 228 KiB hold five such blocks, and would not with 2 of the system.
  const char* const source =
      "__global__ void f(int* x) {\n  __shared__ int s[11 * 1024];\n  s[threadIdx.x] = *x;\n  __syncthreads();\n"
      "  *x = s[0];\n}\n";
  const CommandRun run = check(source, {"--block", "1", "--arg", "i32[1]"});
  if (run.out.find("not looked at") != std::string::npos) GTEST_SKIP() << run.out;
  EXPECT_THAT(run.out, Names("45056 bytes", "block", "5 blocks", "1 threads", "SM"));
  EXPECT_THAT(check(source, {"--block", "1", "--arg", "i32[1]", "--arch", "sm_80"}).out,
              Names("45056 bytes", "block", "3 blocks", "1 threads", "SM"));
}

TEST_F(CheckCommand, ABugIsCode1WithTheLineAndTheOrder) {
  const CommandRun wrong =
      check("__global__ void f(int* out) {\n  if (threadIdx.x == 3) return;\n  __syncthreads();\n}\n",
            {"--block", "32", "--arg", "i32[32]", "--order", "random:4"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.out, Names("divergent", "__syncthreads()", at_line(3), "random:4"));
}

TEST_F(CheckCommand, WhatEndsTheProcessIsAFailedCheck) {
  const std::string host_only = "#ifdef HONE_HOST_DEVICE\nextern \"C\" void _exit(int);\n";
  for (const std::string& source :
       {host_only + "#else\n#define _exit(x)\n#endif\n__global__ void f(int* out) {\n  _exit(0);\n}\n",
        host_only + "struct Global {\n  Global() { _exit(0); }\n} global;\n#endif\n__global__ void f(int* out) {}\n"}) {
    const CommandRun run = check(source, {"--block", "32", "--arg", "i32[32]"});
    EXPECT_EQ(run.code, 1) << run.out;
    EXPECT_THAT(run.out, Names("ended", "exit", "0", "constructors", "global"));
  }
}

TEST_F(CheckCommand, ABufferIsNamedByItsPlaceAmongTheArguments) {
  const CommandRun run =
      check("__global__ void f(int* a, int n, int* b) {\n  b[threadIdx.x + n] = a[threadIdx.x];\n}\n",
            {"--block", "32", "--arg", "i32[32]", "--arg", "i32=1", "--arg", "i32[32]"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.out, Names("argument", "3", "i32[32]", "byte 128"));
}

TEST_F(CheckCommand, AnArchitectureThatNvrtcDoesNotKnowIsCode6) {
  if (GpuCompiler().identity().empty()) GTEST_SKIP() << "there is no NVRTC";
  for (const char* architecture : {"sm90", "foo", "sm_1"}) {
    const CommandRun run = check(kScale, {"--arch", architecture});
    EXPECT_EQ(run.code, 6) << run.out;
    EXPECT_THAT(run.err, Names(architecture, "sm_90"));
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose own memory lies around
TEST_F(CheckCommand, AccessesFarFromABufferAreFound) {
  for (const char* index : {"700000", "-700000", "3000000", "-3000000", "100000000"}) {
    const CommandRun run = check("__global__ void f(int* a, int i) {\n  a[i] = 1;\n}\n",
                                 {"--block", "1", "--arg", "i32[7]", "--arg", std::string("i32=") + index});
    EXPECT_EQ(run.code, 1) << index;
    EXPECT_THAT(run.out, Names("argument", "1", "i32[7]")) << index;
  }
}
#endif

TEST_F(CheckCommand, AnOrderThatIsNoneIsCode2WithAHint) {
  const CommandRun run = check(kScale, {"--block", "1", "--arg", "f32[1]", "--arg", "i32=1", "--order", "sideways"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, Names("--help"));
}

TEST_F(CheckCommand, NumbersBeyondTheirTypeAreRefused) {
  for (const char* argument : {"i32=3000000000", "i8=261", "u8=-1", "i8[256]=300", "i64=9999999999999999999"})
    EXPECT_EQ(check(kScale, {"--block", "1", "--arg", argument}).code, 2) << argument;
}

TEST_F(CheckCommand, AKernelMayHaveATwinForTheHostDevice) {
  const CommandRun run = check("#ifdef HONE_HOST_DEVICE\n__global__ void f(int* out) { *out = 1; }\n#else\n"
                               "__global__ void f(int* out) { *out = (__nanosleep(1), 2); }\n#endif\n",
                               {"--block", "1", "--arg", "i32[1]"});
  EXPECT_THAT(run.err, ::testing::Not(HasSubstr("several kernels")));
  EXPECT_THAT(run.out, Names("no check", "found"));
}

/// Also that of hone check --help.
TEST_F(CheckCommand, TheExampleOfTheDocumentationPasses) {
  std::ifstream text(HONE_EXAMPLES_FOLDER "/kernel_test/scale.cu");
  const std::string scale(std::istreambuf_iterator<char>(text), {});
  ASSERT_THAT(scale, Names("__global__"));
  const CommandRun run = check(scale, {"--grid", "4", "--block", "256", "--arg", "f32[1000]=random", "--arg",
                                       "f32[1000]", "--arg", "i32=1000", "--arg", "f32=2"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
}

TEST_F(CheckCommand, HeadersComeFromTheFilesFolder) {
  write_file(folder_ / "part.cuh", "#include \"inner.cuh\"\n");
  write_file(folder_ / "inner.cuh", "__device__ int two() { return 2; }\n");
  const CommandRun run = check("#include \"part.cuh\"\n__global__ void f(int* out) { *out = two(); }\n",
                        {"--block", "1", "--arg", "i32[1]=0"});
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST_F(CheckCommand, WhatDoesNotCompileIsCode6WithTheFilesLinesOnce) {
  const CommandRun run =
      check("__global__ void f(int* out) {\n  *out = undeclared;\n}\n", {"--block", "1", "--arg", "i32[1]=0"});
  EXPECT_EQ(run.code, 6);
  EXPECT_THAT(run.err, AllOf(Names("undeclared"), ::testing::ContainsRegex("kernel.cu[:(]2")));
  const std::string place = run.err.find("kernel.cu(2)") != std::string::npos ? "kernel.cu(2)" : "kernel.cu:2:";
  EXPECT_EQ(run.err.find(place), run.err.rfind(place)) << "the log is there twice\n" << run.err;
}

TEST_F(CheckCommand, WhatTheHostDeviceLacksIsNamedWithItsLine) {
  const CommandRun run =
      check("__global__ void f(float* x, unsigned long long t) {\n  *x = tex1Dfetch<float>(t, 0);\n}\n",
            {"--block", "1", "--arg", "f32[1]", "--arg", "u64=0"});
  EXPECT_EQ(run.code, 6);
  EXPECT_THAT(run.err, Names(at_line(2) + ": textures and surfaces (tex1Dfetch) are not supported"));
}

TEST_F(CheckCommand, ErrorsInHeadersNameThem) {
  write_file(folder_ / "part.cuh", "\n__device__ void part() {\n  __syncthreads();\n}\n");
  const CommandRun run =
      check("#include \"part.cuh\"\n__global__ void f(int* out) {\n  if (threadIdx.x > 0) part();\n}\n",
            {"--block", "2", "--arg", "i32[1]=0"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.out, Names((folder_ / "part.cuh").string() + ":3"));
}

TEST_F(CheckCommand, AnEndlessLoopWithoutABodyHasItsLine) {
  const auto endless = [&](const std::string& source) {
    return check(source, {"--block", "32", "--deadline", "100ms", "--order", "forward"}).out;
  };
  EXPECT_THAT(endless("__global__ void f() { for (;;) ; }\n"), HasLine("stopped", at_line(1)));
  EXPECT_THAT(endless("__device__ void wait() {\n  while (true) {\n  }\n}\n"
                      "__global__ void f() {\n  if (threadIdx.x < 3) wait();\n}\n"),
              HasLine("stopped", at_line(2)));
}

TEST_F(CheckCommand, AnInstanceOfATemplateRuns) {
  const CommandRun run = check("template <class T> __global__ void f(T* out) { *out = 2; }\n",
                               {"--entry", "f<float>", "--block", "1", "--arg", "f32[1]"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, Names("no check", "found"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which report it themselves, or not at all
TEST_F(CheckCommand, AnAccessOutOfBoundsNamesTheBuffer) {
  const CommandRun beyond = check(kScale, {"--block", "256", "--arg", "f32[64]", "--arg", "i32=256"});
  EXPECT_EQ(beyond.code, 1);
  EXPECT_THAT(beyond.out,
              AllOf(Names("buffer", "\"argument 1: f32[64]\"", "256 bytes", "byte 256"), HasLine("thread (64,0,0)")));
  const CommandRun no_pointer = check(kScale, {"--block", "256", "--arg", "u64=3", "--arg", "i32=256"});
  EXPECT_EQ(no_pointer.code, 1);
  EXPECT_THAT(no_pointer.out, Names("accessed", "0x3"));
}
#endif

TEST_F(CheckCommand, WrongArgumentsAreCode2) {
  EXPECT_EQ(run_hone({"check"}).code, 2);
  EXPECT_EQ(run_hone({"check", (folder_ / "none.cu").string()}).code, 4);
  EXPECT_EQ(check(kScale, {"--arg", "i32=1"}).code, 2);
  EXPECT_EQ(check(kScale, {"--block", "x"}).code, 2);
  EXPECT_EQ(check(kScale, {"--block", "1,2,3,4"}).code, 2);
  EXPECT_EQ(check(kScale, {"--block", "32", "--order", "sideways"}).code, 2);
  EXPECT_EQ(check(kScale, {"--block", "1025"}).code, 2);
  EXPECT_EQ(check(kScale, {"--block", "32", "--grid", "0"}).code, 2);
  const CommandRun too_few = check(kScale, {"--block", "32", "--arg", "f32[32]"});
  EXPECT_EQ(too_few.code, 2);
  EXPECT_THAT(too_few.err, Names("1 arguments", "kernel", "2 parameters", "--arg"));
  EXPECT_EQ(check("", {}).code, 2);
  EXPECT_THAT(run_hone({"check", folder_.path().string()}).err, Names("directory"));
  EXPECT_THAT(check(kScale, {"--entry", "scal"}).err, Names("no kernel", "'scal'", "scale"));
  EXPECT_THAT(check("__global__ void a() {}\n__global__ void b() {}\n", {}).err, Names("--entry", "b"));
  EXPECT_THAT(check("int x;\n", {}).err, Names("no function", "marked", "__global__"));
}

template <class T>
T value_of(const CheckArgument& argument, std::size_t index = 0) {
  T value;
  std::memcpy(&value, argument.bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

TEST(CheckArguments, HoldValuesAndBuffers) {
  EXPECT_EQ(value_of<std::int32_t>(parse_check_argument("i32=-7")), -7);
  EXPECT_EQ(value_of<std::uint64_t>(parse_check_argument("u64=18446744073709551615")), ~std::uint64_t{0});
  EXPECT_EQ(value_of<float>(parse_check_argument("f32=2.5")), 2.5f);
  EXPECT_EQ(value_of<double>(parse_check_argument("f64[3]=iota"), 2), 2.0);
  EXPECT_EQ(value_of<std::uint16_t>(parse_check_argument("f16=1.5")), 0x3e00);
  EXPECT_EQ(value_of<std::uint16_t>(parse_check_argument("f16=1e9")), 0x7c00);
  EXPECT_EQ(value_of<std::uint16_t>(parse_check_argument("f16=5.960464477539063e-8")), 0x0001);
  EXPECT_EQ(value_of<std::uint16_t>(parse_check_argument("bf16=-2")), 0xc000);
  EXPECT_FALSE(parse_check_argument("f32[8]=random,any").compared);
  EXPECT_EQ(parse_check_argument("f32[8]=random:5").bytes, parse_check_argument("f32[8]=random:5").bytes);
  EXPECT_NE(parse_check_argument("f32[8]=random:5").bytes, parse_check_argument("f32[8]=random").bytes);
  EXPECT_EQ(parse_check_argument("i8[2^10]=1").bytes.size(), 1024u);
}

TEST(CheckArguments, NonsenseIsRefused) {
  for (const char* text : {"", "i32", "i32=", "i32=1.5", "i33=1", "f32[10=1", "f32[]=1", "f32[x]=1", "f32[-1]=1",
                           "f32[4]=often", "i32[4]=nan", "f32[2^40]=0", "i32=12 "}) {
    EXPECT_THROW(parse_check_argument(text), CommandError) << text;
  }
}

}  // namespace
}  // namespace hone::tuner
