// check_on_host() as a user calls it; examples/kernel_test is the example of docs/host-device.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hone/error.h>
#include <hone/host_check.h>

#include "tests/runtime/support/long_under_sanitizers.h"
#include "tests/support/names.h"

namespace hone::test {
namespace {

using testing::AllOf;
using testing::Not;

HostCheck check_of(const std::string& body) {
  HostCheck check;
  check.unit = {"test", "extern \"C\" __global__ void entry(int* out) {\n" + body + "\n}\n", {}, {"entry"}};
  check.buffers = {CheckBuffer::of("out", std::vector<int>(65))};
  check.run = [](const HostRun& run) { run.launch({2}, {32}, 0, run.buffer<int>(0)); };
  return check;
}

constexpr char kWhoComesFirst[] = "out[blockIdx.x * 32 + threadIdx.x] = atomicAdd(out + 64, 1);";

#if !defined(__SANITIZE_THREAD__)  // where blocks run at the same time
using CheckOnHost = LongUnderSanitizers;

TEST_F(CheckOnHost, AFailingOrderCanBeReplayed) {
  const HostCheck check = check_of(kWhoComesFirst);
  const HostCheckReport report = check_on_host(check);
  EXPECT_THAT(report.failure, Names("depends", "order", "orders", "forward", "reverse", "buffer", "\"out\""));
  EXPECT_EQ(report.failed_order.kind, HostOrder::Kind::reverse);
  HostCheck replay = check;
  replay.orders = {{}, parse_host_order(to_string(report.failed_order))};
  EXPECT_EQ(check_on_host(replay).failure, report.failure);
}

TEST_F(CheckOnHost, ASeedGivesTheSameBytesEveryTime) {
  HostCheck check = check_of(kWhoComesFirst);
  check.orders = {{HostOrder::Kind::random, 7}, {HostOrder::Kind::random, 7}};
  EXPECT_EQ(check_on_host(check).failure, "");
  check.orders.back().seed = 8;
  const HostCheckReport report = check_on_host(check);
  EXPECT_THAT(report.failure, Names("random:7", "random:8"));
  EXPECT_EQ(to_string(report.failed_order), "random:8");
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
TEST_F(CheckOnHost, ADivisionByAConstantZeroIsFoundWithItsLine) {
  const HostCheckReport report = check_on_host(check_of("int parts = 0;\nout[1] = out[0] / parts;"));
  EXPECT_THAT(report.failure, AllOf(Names("integer", "zero"), HasLine("stopped at", "unit.cu:3")));
}
#endif

TEST_F(CheckOnHost, AnEndlessLoopIsStoppedAfterTheDeadline) {
  HostCheck check = check_of("for (volatile unsigned i = 0;; ++i) out[1] = i;");
  check.deadline = std::chrono::milliseconds(100);
  EXPECT_THAT(check_on_host(check).failure, Names("100 ms", "HostCheck::deadline", "--deadline"));
}

TEST_F(CheckOnHost, ALoopThatWaitsForWhatNobodyWritesIsFound) {
  HostCheck check = check_of("while (out[0] == 0) {}\nout[1] = 2;");
  check.deadline = std::chrono::milliseconds(100);
  EXPECT_THAT(check_on_host(check).failure, Names("100 ms"));
}

#if !defined(__SANITIZE_THREAD__)  // which reports races itself
TEST_F(CheckOnHost, ARaceNamesBothAccessesTheirThreadsAndTheArray) {
  HostCheck check = check_of("__shared__ int other[8], tile[32];\n"
                             "other[threadIdx.x % 8] = 0;\n"
                             "__syncthreads();\n"
                             "tile[threadIdx.x] = blockIdx.x + threadIdx.x;\n"
                             "out[blockIdx.x * 32 + threadIdx.x] = tile[31 - threadIdx.x] + other[0];");
  EXPECT_THAT(check_on_host(check).failure,
              AllOf(HasLine("unit.cu:3", "writes"), HasLine("unit.cu:3", "thread (8,0,0)"),
                    HasLine("unit.cu:5", "writes", "thread"), HasLine("unit.cu:6", "reads", "thread"),
                    HasLine("\"tile\"", "shared memory"), HasLine("__syncthreads()", "between")));
}

TEST_F(CheckOnHost, ARaceFromOneRoundOfALoopToTheNextIsNamed) {
  const std::string body = "__shared__ int tile[32];\n"
                           "int v = threadIdx.x;\n"
                           "for (int i = 0; i < 3; ++i) {\n"
                           "  tile[threadIdx.x] = v;\n"
                           "  __syncthreads();\n"
                           "  v += tile[31 - threadIdx.x];\n";
  const std::string failure =
      check_on_host(check_of(body + "}\nout[blockIdx.x * 32 + threadIdx.x] = v;")).failure;
  EXPECT_THAT(failure, AllOf(HasLine("unit.cu:7", "reads"), HasLine("unit.cu:5", "writes"), HasLine("next", "loop")));
  const std::string mended = body + "  __syncthreads();\n}\nout[blockIdx.x * 32 + threadIdx.x] = v;";
  EXPECT_EQ(check_on_host(check_of(mended)).failure, "");
}

TEST_F(CheckOnHost, ARaceOnOneLineIsMendedByReadingFirst) {
  // "s" would be "short" to whoever took it for the encoding of a type.
  HostCheck check = check_of("extern __shared__ float s[];\n"
                             "s[threadIdx.x] = out[threadIdx.x];\n"
                             "if (threadIdx.x == 31) s[32] = 0;\n"
                             "__syncthreads();\n"
                             "s[threadIdx.x] = s[threadIdx.x + 1] + threadIdx.x;\n"
                             "__syncthreads();\n"
                             "out[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x];");
  check.run = [](const HostRun& run) { run.launch({1}, {32}, 33 * sizeof(float), run.buffer<int>(0)); };
  EXPECT_THAT(check_on_host(check).failure,
              AllOf(HasLine("unit.cu:6", "reads"), HasLine("unit.cu:6", "writes"), HasLine("\"s\"", "shared memory"),
                    HasLine("variable", "__syncthreads()", "write then")));
}

TEST_F(CheckOnHost, ARaceInAnIncludedFileIsNamedThere) {
  HostCheck check = check_of("__shared__ int tile[32];\nfill(tile);\n"
                             "out[blockIdx.x * 32 + threadIdx.x] = last(tile, out);");
  check.unit.source.insert(0, "#include \"tile.cuh\"\n");
  check.unit.headers = {{"tile.cuh", "__device__ void fill(int* tile) {\n  tile[threadIdx.x] = threadIdx.x;\n}\n"
                                     "__device__ int last(const int* tile, const int*) {\n"
                                     "  return __ldg(tile + 31 - threadIdx.x);\n}\n"}};
  EXPECT_THAT(check_on_host(check).failure, AllOf(HasLine("tile.cuh:2", "writes"), HasLine("tile.cuh:5", "reads")));
}

TEST_F(CheckOnHost, ARaceInGlobalMemoryNamesTheBuffer) {
  EXPECT_THAT(check_on_host(check_of("out[threadIdx.x] = blockIdx.x;")).failure,
              AllOf(HasLine("unit.cu:2", "block (0,0,0)", "writes"), HasLine("unit.cu:2", "block (1,0,0)"),
                    HasLine("\"out\"", "byte 0"), HasLine("no barrier orders blocks")));
  EXPECT_THAT(check_on_host(check_of("out[threadIdx.x / 2 + 32 * blockIdx.x] = threadIdx.x;")).failure,
              AllOf(HasLine("unit.cu:2", "thread (0,0,0)"), HasLine("unit.cu:2", "thread (1,0,0)"),
                    HasLine("one thread alone")));
}

TEST_F(CheckOnHost, AnUpdateThatMayBeLostIsNamed) {
  const std::string rest = "  // of both blocks and all threads";
  EXPECT_THAT(check_on_host(check_of("out[64] += 1;" + rest)).failure,
              AllOf(Names("lose", "\"out\"", "byte 256"), HasLine("unit.cu:2", "thread (0,0,0)"),
                    HasLine("unit.cu:2", "thread (1,0,0)"), HasLine("atomic function")));
  EXPECT_THAT(check_on_host(check_of("__shared__ int sum;\nif (threadIdx.x == 0) sum = 0;\n__syncthreads();\n"
                                     "sum = sum + 2;\n__syncthreads();\nif (threadIdx.x == 0) out[blockIdx.x] = sum;"))
                  .failure,
              AllOf(HasLine("\"sum\"", "shared memory"), HasLine("unit.cu:5", "thread (1,0,0)")));
  const std::string beside_atomic = "if (threadIdx.x == 5) out[64] = out[64] + 1;\nelse atomicAdd(out + 64, 1);";
  EXPECT_THAT(check_on_host(check_of(beside_atomic)).failure,
              AllOf(HasLine("unit.cu:2"), HasLine("unit.cu:3", "atomically")));
}

TEST_F(CheckOnHost, WhatLosesNoUpdateIsNoFault) {
  for (const char* const right : {"out[64] = 7;", "if (out[64] == 0) out[64] = 1;", "out[64] |= 4;",
                                  "atomicMax(out + 64, 3);\nif (out[64] < 3) out[64] = 3;",
                                  "out[blockIdx.x * 32 + threadIdx.x] += 1;\nout[blockIdx.x * 32 + threadIdx.x] += 1;",
                                  "for (int i = 0; i < 32; ++i) {\n"
                                  "  if (threadIdx.x == i) out[blockIdx.x] += i;\n  __syncwarp();\n}"})
    EXPECT_EQ(check_on_host(check_of(right)).failure, "") << right;
}

TEST_F(CheckOnHost, FencesAndWarpBarriersAreNoRace) {
  HostCheck check = check_of("__shared__ int tile[32];\n"
                             "tile[threadIdx.x] = threadIdx.x;\n__syncwarp();\n"
                             "const int v = tile[31 - threadIdx.x];\n__syncwarp();\ntile[threadIdx.x] = v;\n"
                             "__threadfence();\n"
                             "out[blockIdx.x * 32 + threadIdx.x] = v + atomicAdd(out + 64, 1);");
  EXPECT_THAT(check_on_host(check).failure, AllOf(Names("depends", "atomic"), Not(testing::HasSubstr("unit.cu:"))));
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(CheckOnHost, AnIndexBeyondASharedArrayIsNamed) {
  const std::string body = "__shared__ int tile[4][8], other[32];\nother[threadIdx.x] = threadIdx.x;\n"
                           "const int x = threadIdx.x % 8, y = threadIdx.x / 8;\n"
                           "tile[y][x] = x;\n__syncthreads();\n";
  EXPECT_THAT(check_on_host(check_of(body + "out[blockIdx.x * 32 + threadIdx.x] = tile[y][x + 1];")).failure,
              AllOf(Names("index 8", "'int [8]'"), HasLine("unit.cu:7", "thread (7,0,0)")));
  // A row may be left by a pointer, which knows no rows.
  EXPECT_EQ(check_on_host(check_of(body + "const int* flat = &tile[0][0];\n"
                                          "out[blockIdx.x * 32 + threadIdx.x] = flat[threadIdx.x];")).failure, "");
}

TEST_F(CheckOnHost, OperationsThatAreUndefinedAreNamed) {
  const auto failure = [](const std::string& body, const std::string& functions = "") {
    HostCheck check = check_of(body);
    check.unit.source.insert(0, functions);
    return check_on_host(check).failure;
  };
  const std::string thread = "const int i = threadIdx.x;\n";
  EXPECT_THAT(failure(thread + "out[i] = 1 << (i + 1);"), AllOf(Names("shift by 32", "'int'", "32 bits"),
                                                               HasLine("unit.cu:3", "thread (31,0,0)")));
  EXPECT_THAT(failure(thread + "out[i] = out[i] >> (i - 3);"), Names("shift by -3"));
  EXPECT_EQ(failure(thread + "out[i] = (1 << i) ^ (-1 << 3) ^ (int)(1ull << (i + 32));"), "");
  EXPECT_THAT(failure(thread + "out[i] = (int)(1e8f * i);"),
              AllOf(Names("conversion of 2200000000 to 'int'", "__float2int_rz()"), HasLine("unit.cu:3", "(22,0,0)")));
  EXPECT_THAT(failure(thread + "out[i] = (unsigned char)((double)i - 1);"), Names("-1 to 'unsigned char'"));
  EXPECT_EQ(failure(thread + "out[i] = __float2int_rz(1e8f * i) + (int)-0.5f;"), "");
  const std::string owes = "__device__ int pick(int i) {\n  if (i < 9) return i;\n}\n";
  EXPECT_THAT(failure(thread + "out[i] = pick(i);", owes),
              AllOf(Names("without the result"), HasLine("unit.cu:1", "thread (9,0,0)")));
  EXPECT_THAT(failure(thread + "if (i == 5) __builtin_unreachable();\nout[i] = i;"),
              AllOf(Names("__builtin_unreachable()"), HasLine("unit.cu:3", "thread (5,0,0)")));
}

/// A compiler that knows them to be null may leave out the call of the kernel.
TEST_F(CheckOnHost, NullPointersThatTheCompilerSeesAreFound) {
  for (const char* const body : {"int* p = nullptr;\nout[threadIdx.x] = *p;", "\nout[0] = *(volatile int*)0;",
                                 "int* p = nullptr;\nout[0] += *p;", "int* p = nullptr;\n*p = 1;"})
    EXPECT_THAT(check_on_host(check_of(body)).failure,
                AllOf(Names("address 0x0"), HasLine("stopped at", "unit.cu:3"),
                      Not(testing::HasSubstr("hone-compile")), Not(testing::HasSubstr("hone check"))))
        << body;
  for (const char* const access : {"atomicAdd(p + 3, 1)", "atomicAdd((float*)p + 3, 1.f)", "atomicMax(p + 3, 1)",
                                   "atomicCAS(p + 3, 1, 2)", "out[0] = __ldg(p + 3)", "__stcg(p + 3, 1)"})
    EXPECT_THAT(check_on_host(check_of(std::string("int* p = nullptr;\n") + access + ";")).failure,
                AllOf(Names("address 0xc"), HasLine("stopped at", "unit.cu:3")))
        << access;
  HostCheck check = check_of("load(out);");
  check.unit.source.insert(0, "__device__ void load(int* out) {\n  int* p = nullptr;\n  out[0] = *p;\n}\n");
  EXPECT_THAT(check_on_host(check).failure, AllOf(Names("address 0x0"), HasLine("stopped at", "unit.cu:3")));
}

/// Also runs the body as 46351 × 46349 threads.
HostCheckReport check_large(const std::string& body) {
  static constexpr int kWidth = 46351, kHeight = 46349;
  HostCheck check = check_of(body);
  check.large = HostLargeRun{.label = "46351x46349 elements",
                             .buffer_bytes = {std::uint64_t{kWidth} * kHeight * sizeof(int)},
                             .run = [](const HostRun& run) {
                               const Dim3 grid{(kWidth + 31) / 32, kHeight}, block{32};
                               run.launch(grid, block, 0, run.buffer<int>(0));
                             }};
  return check_on_host(check);
}

TEST_F(CheckOnHost, IndicesThatOverflowAreFoundWithoutTheMemory) {
  const auto failure = [](const std::string& body) {
    const HostCheckReport report = check_large(body);
    EXPECT_EQ(report.large_not_run, "");
    return report.failure;
  };
  const std::string place = "const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y, width = 46351;\n"
                            "if (gridDim.x > 2 && x < width)\n";
  EXPECT_THAT(failure(place + "  out[y * width + x] = 1;"),
              AllOf(Names("46351x46349", "46348", "46351", "'int'", "long long"), HasLine("thread", "unit.cu:4")));
  EXPECT_EQ(failure(place + "  out[(long long)y * width + x] = 1;"), "");
  // Unsigned arithmetic wraps, which is right in C++, and leads out of the buffer as an int.
  EXPECT_THAT(failure(place + "  out[(int)(blockIdx.y * width + x)] = 1;"),
              AllOf(Names("46351x46349", "before"), HasLine("unit.cu:4"), HasLine("buffer", "\"out\"")));
}

TEST_F(CheckOnHost, WhatEndsTheLargeRunIsAFault) {
  const std::string only_there = "if (gridDim.x > 2 && blockIdx.x > 0)\n";
  EXPECT_THAT(check_large(only_there + "__trap();").failure,
              AllOf(Names("46351x46349", "__trap()"), HasLine("thread (0,0,0)", "unit.cu:3")));
  EXPECT_THAT(check_large(only_there + "*(int*)8 = 1;").failure,
              AllOf(Names("46351x46349", "0x8"), HasLine("unit.cu:3")));
  // The zeros that its buffers hold are at fault.
  const HostCheckReport divided = check_large("if (gridDim.x > 2) out[0] = 7 / out[1];");
  EXPECT_EQ(divided.failure, "");
  EXPECT_THAT(divided.large_not_run, Names("divided", "zero"));
}
#endif

TEST_F(CheckOnHost, BuffersMayBeLeftOutOfTheComparison) {
  HostCheck check = check_of(kWhoComesFirst);
  check.buffers[0].compared = false;
  EXPECT_TRUE(check_on_host(check).ok());
}

TEST_F(CheckOnHost, EveryRunStartsFromTheInitialContents) {
  HostCheck check = check_of("atomicAdd(out + threadIdx.x, 1);");
  check.buffers[0] = CheckBuffer::of("out", std::vector<int>(64, 5));
  const HostCheckReport report = check_on_host(check);
  EXPECT_TRUE(report.ok()) << report.failure;
  EXPECT_EQ(report.values<int>(0)[3], 7);
  EXPECT_EQ(report.values<int>(0)[40], 5);
}

TEST_F(CheckOnHost, AFailedCheckNamesTheOrder) {
  HostCheck check = check_of("if (threadIdx.x == 3) return;\n__syncthreads();");
  check.orders = {{HostOrder::Kind::random, 9}};
  EXPECT_THAT(check_on_host(check).failure,
              Names("\"entry\"", "(test)", "unit.cu:3", "order", "random:9"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose reports are others
TEST_F(CheckOnHost, AccessesOutOfBoundsNameTheBufferTheThreadAndTheLine) {
  // 260 bytes: where they are aligned, 252 of a pattern are behind them.
  const auto failure = [](const std::string& body) { return check_on_host(check_of(body)).failure; };
  EXPECT_THAT(failure("if (threadIdx.x == 7) out[65] = 1;"),
              AllOf(Names("accessed", "address", "stopped", "unit.cu:2", "buffer", "\"out\"", "260 bytes", "byte 260",
                          "behind", "order", "forward"),
                    HasLine("thread (7,0,0)")));
  EXPECT_THAT(failure("int i = threadIdx.x;\nif (i < 31) return;\nout[0] = out[i + 34];"),
              AllOf(Names("stopped", "unit.cu:4", "byte 260"), HasLine("thread (31,0,0)")))
      << "reads are seen as well";
  EXPECT_THAT(failure("out[-1] = 1;"), AllOf(Names("stopped", "unit.cu:2", "byte -4", "before"),
                                             HasLine("thread (0,0,0)")));
  EXPECT_THAT(failure("__syncwarp();\nif (threadIdx.x == 7) out[0] = out[128];"),
              AllOf(Names("stopped", "unit.cu:3", "buffer", "\"out\"", "260 bytes", "byte 512", "behind"),
                    HasLine("thread (7,0,0)", "last", "unit.cu:2")));
  EXPECT_THAT(failure("out[blockIdx.x * 32 + threadIdx.x] = out[-100000];"),
              Names("byte -400000", "before"));
  EXPECT_EQ(failure("out[blockIdx.x * 32 + threadIdx.x] = out[64];"), "");
}

TEST_F(CheckOnHost, ACopyWithoutAGuardIsSeenBehindTheEndOfItsInput) {
  HostCheck check;
  check.unit = {"test",
                "extern \"C\" __global__ void entry(const int* in, int* out) {\n"
                "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n  out[i] = in[i];\n}\n",
                {},
                {"entry"}};
  check.buffers = {CheckBuffer::of("in", std::vector<int>(90, 3)), CheckBuffer::of("out", std::vector<int>(90))};
  check.run = [](const HostRun& run) { run.launch({3}, {32}, 0, run.buffer<int>(0), run.buffer<int>(1)); };
  EXPECT_THAT(check_on_host(check).failure,
              AllOf(Names("block (2,0,0)", "stopped", "unit.cu:3", "buffer", "\"in\"", "360 bytes", "byte 360",
                          "behind"),
                    HasLine("thread (26,0,0)")));
}

// Where buffers end at a page they are aligned to less than on a GPU: what a kernel makes of that is not held against
// it.
TEST_F(CheckOnHost, AKernelMayRelyOnAlignedBuffers) {
  EXPECT_EQ(check_on_host(check_of("assert(reinterpret_cast<unsigned long long>(out) % 256 == 0);\n"
                                   "reinterpret_cast<int4*>(out)[0] = {1, 2, 3, 4};")).failure, "");
}
#endif

TEST_F(CheckOnHost, BuffersAreAlignedAsOnAGpuInAllRunsButOne) {
  for (const std::size_t size : {0u, 1u, 255u, 4096u, 5000u}) {
    HostCheck check = check_of("");
    int less_aligned = 0;
    check.buffers = {CheckBuffer::of("out", std::vector<char>(size))};
    check.run = [&](const HostRun& run) {
      less_aligned += reinterpret_cast<std::uintptr_t>(run.buffer<char>(0)) % 256 != 0;
    };
    EXPECT_TRUE(check_on_host(check).ok());
    EXPECT_LE(less_aligned, size % 256 == 0 ? 0 : 1);
  }
}

TEST_F(CheckOnHost, AWrongNumberOfArgumentsIsTheCallersFault) {
  HostCheck check = check_of("");
  check.run = [](const HostRun& run) { run.launch({1}, {1}, 0, run.buffer<int>(0), 5); };
  try {
    check_on_host(check);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), Names("2 arguments", "kernel", "1 parameters"));
  }
}

TEST_F(CheckOnHost, WhatIsNotTheKernelsFaultIsThrown) {
  HostCheck check = check_of("undeclared();");
  EXPECT_THROW(check_on_host(check), Error);
  check = check_of("");
  check.orders.clear();
  EXPECT_THROW(check_on_host(check), Error);
}

TEST(HostOrder, IsSpelledAndRead) {
  for (const char* text : {"forward", "reverse", "random:0", "random:18446744073709551615"})
    EXPECT_EQ(to_string(parse_host_order(text)), text);
  for (const char* text : {"", "backward", "random", "random:", "random:x", "random:-1", "random:99999999999999999999"})
    EXPECT_THROW(parse_host_order(text), Error) << text;
}

}  // namespace
}  // namespace hone::test
