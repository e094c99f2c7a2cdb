#include "runtime/jit/nvrtc_compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include <hone/error.h>

#include "tests/support/names.h"

namespace hone {
namespace {

using testing::HasSubstr;
using test::Names;
using testing::Not;

constexpr const char* kKernel = R"(extern "C" __global__ void scale(float* values, float factor) {
  values[blockIdx.x * blockDim.x + threadIdx.x] *= factor;
}
)";

bool contains(const std::vector<std::byte>& code, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return std::search(code.begin(), code.end(), bytes.begin(), bytes.end()) != code.end();
}

class NvrtcCompiling : public testing::Test {
 protected:
  void SetUp() override {
    if (compiler_.identity().empty()) GTEST_SKIP() << "NVRTC is not installed";
  }

  static Unit unit(std::string source, std::vector<SourceFile> headers = {}) {
    return {
        .name = "scale block_threads=256", .source = std::move(source), .headers = std::move(headers), .entries = {}};
  }

  void expect_failure(const Unit& unit, std::string_view architecture, ErrorCode code,
                      const std::function<void(const std::string&)>& look) const {
    try {
      compiler_.compile(unit, architecture);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      look(error.what());
    }
  }

  const NvrtcCompiler compiler_{NvrtcSearch::from_environment()};
};

TEST_F(NvrtcCompiling, MakesACubinForEachArchitecture) {
  for (const char* architecture : {"sm_80", "sm_90"}) {
    const Binary binary = compiler_.compile(unit(kKernel), architecture);
    EXPECT_EQ(binary.format, "cubin");
    EXPECT_EQ(binary.architecture, architecture);
    ASSERT_GT(binary.code.size(), 64U);
    constexpr int kCudaMachine = 190;  // EM_CUDA in e_machine
    EXPECT_EQ(std::to_integer<int>(binary.code[18]), kCudaMachine);
    EXPECT_TRUE(contains(binary.code, ".text.scale"));
  }
}

TEST_F(NvrtcCompiling, NamesSourceLinesOnlyIfAsked) {
  const auto has_lines = [](const char* asked) {
    ::setenv("HONE_LINE_INFO", asked, 1);
    const NvrtcCompiler compiler(NvrtcSearch::from_environment());
    ::unsetenv("HONE_LINE_INFO");
    return contains(compiler.compile(unit(kKernel), "sm_90").code, ".debug_line");
  };
  EXPECT_FALSE(has_lines("")) << "they would make the cache more than twice as large";
  EXPECT_FALSE(has_lines("off"));
  EXPECT_TRUE(has_lines("on"));
}

TEST(NvrtcCompiler, RefusesToGuessWhetherLinesAreWanted) {
  ::setenv("HONE_LINE_INFO", "yes", 1);
  try {
    const NvrtcCompiler compiler({});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), Names("HONE_LINE_INFO", "'yes'", "off", "on"));
  }
  ::unsetenv("HONE_LINE_INFO");
}

TEST_F(NvrtcCompiling, IncludesTheHeadersOfTheUnit) {
  const Unit with_headers = unit(
      "#include \"folder/twice.cuh\"\n"
      "extern \"C\" __global__ void k(int* out) { *out = twice(21); }\n",
      {{"folder/twice.cuh",
        "#include \"two.cuh\"\n"
        "__device__ constexpr int twice(int x) { return kTwo * x; }\n"},
       {"two.cuh", "constexpr int kTwo = 2;\n"}});
  EXPECT_TRUE(contains(compiler_.compile(with_headers, "sm_90").code, ".text.k"));
}

TEST_F(NvrtcCompiling, FindsFilesInTheFoldersOfTheUnit) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "hone_include_folders";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "three.cuh") << "constexpr int kThree = 3;\n";
  Unit three = unit("#include <three.cuh>\nextern \"C\" __global__ void k(int* out) { *out = kThree; }\n");
  expect_failure(three, "sm_90", ErrorCode::compile_failed,
                 [](const std::string& message) { EXPECT_THAT(message, Names("three.cuh")); });
  three.include_folders = {folder};
  EXPECT_TRUE(contains(compiler_.compile(three, "sm_90").code, ".text.k"));
}

TEST_F(NvrtcCompiling, CompilesCxx20) {
  EXPECT_NO_THROW(compiler_.compile(unit("template <class T> concept Small = sizeof(T) <= 4;\n"
                                         "template <Small T> __device__ T same(T x) { return x; }\n"
                                         "extern \"C\" __global__ void k(int* p) { *p = same(*p); }\n"),
                                    "sm_90"));
}

TEST_F(NvrtcCompiling, TheSameSourceGivesTheSameCubinWhateverItsName) {
  Unit renamed = unit(kKernel);
  renamed.name = "another name";
  EXPECT_EQ(compiler_.compile(unit(kKernel), "sm_90").code, compiler_.compile(renamed, "sm_90").code);
}

TEST_F(NvrtcCompiling, AnErrorHasTheUnitTheOptionsAndTheLine) {
  expect_failure(unit("extern \"C\" __global__ void k() {\n\n  no_such_thing();\n}\n"), "sm_90",
                 ErrorCode::compile_failed, [](const std::string& message) {
                   EXPECT_THAT(message, Names("scale", "block_threads=256"));
                   EXPECT_THAT(message, Names("--gpu-architecture=sm_90"));
                   EXPECT_THAT(message, Names("unit.cu(3)", "error"));
                   EXPECT_THAT(message, Names("no_such_thing"));
                   EXPECT_THAT(message, Not(HasSubstr(std::string(1, '\0'))));
                 });
}

TEST_F(NvrtcCompiling, AnErrorInAHeaderNamesTheHeader) {
  expect_failure(unit("#include \"broken.cuh\"\n", {{"broken.cuh", "\nint x = ;\n"}}), "sm_90",
                 ErrorCode::compile_failed,
                 [](const std::string& message) { EXPECT_THAT(message, Names("broken.cuh(2)", "error")); });
}

TEST_F(NvrtcCompiling, AFailedStaticAssertIsInTheMessage) {
  expect_failure(unit("static_assert(sizeof(int) == 5, \"device and host disagree\");\n"), "sm_90",
                 ErrorCode::compile_failed,
                 [](const std::string& message) { EXPECT_THAT(message, Names("host", "disagree")); });
}

TEST_F(NvrtcCompiling, AnUnknownArchitectureIsUnsupportedAndTheKnownOnesAreListed) {
  for (const char* architecture : {"sm_20", "x86_64", ""}) {
    expect_failure(unit(kKernel), architecture, ErrorCode::unsupported, [&](const std::string& message) {
      EXPECT_THAT(message, Names(std::string("compile for ") + architecture));
      EXPECT_THAT(message, Names("sm_90"));
      EXPECT_THAT(message, Names("HONE_NVRTC"));
    });
  }
}

TEST_F(NvrtcCompiling, SeveralThreadsCompileAtOnce) {
  constexpr int kThreads = 4;
  const auto source = [](int i) {
    return "extern \"C\" __global__ void k(int* p) { *p += " + std::to_string(i) + "; }\n";
  };
  std::vector<Binary> together(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        together[static_cast<std::size_t>(i)] = compiler_.compile(unit(source(i)), i % 2 == 0 ? "sm_90" : "sm_80");
      });
    }
  }
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_EQ(together[static_cast<std::size_t>(i)].code,
              compiler_.compile(unit(source(i)), i % 2 == 0 ? "sm_90" : "sm_80").code);
  }
}

}  // namespace
}  // namespace hone
