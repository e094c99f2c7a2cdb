// A .cu file becomes a unit whose reports name the file.
#include <gmock/gmock.h>

#include <hone/error.h>
#include <hone/sdk/kernel_file.h>

#include <fstream>

#include "tests/runtime/support/temp_folder.h"

namespace hone::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class KernelFile : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name.c_str();
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }

  TempFolder folder_;
};

ErrorCode code_of(const std::filesystem::path& path) {
  try {
    read_kernel_file(path);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST_F(KernelFile, BringsItsKernelsAndItsPlace) {
  const auto path = write("two.cu", "__global__ void a() {}\n__global__ void b(int) {}\n");
  const Unit unit = read_kernel_file(path);
  EXPECT_EQ(unit.name, "two.cu");
  EXPECT_THAT(unit.entries, ElementsAre("a", "b"));
  EXPECT_EQ(unit.source, "#line 1 \"" + path.string() + "\"\n__global__ void a() {}\n__global__ void b(int) {}\n");
  EXPECT_THAT(read_kernel_file(path, {"b"}).entries, ElementsAre("b"));
}

TEST_F(KernelFile, PlacesAreLinesOfAsciiWhateverTheName) {
  const std::filesystem::path path = write("a\"b\n\xff.cu", "__global__ void k() {}\n");
  EXPECT_THAT(read_kernel_file(path).source, HasSubstr("a\\042b\\012\\377.cu\"\n"));
  EXPECT_EQ(with_place("a \xff\n\t\"\\?.cu", "x\n"), "#line 1 \"a \\377\\012\\011\\042\\134\\077.cu\"\nx\n");
}

TEST_F(KernelFile, BringsWhatItIncludesFromItsFolder) {
  write("parts/inner.cuh", "int inner;\n");
  write("part.cuh", "#include \"parts/inner.cuh\"\n#include \"part.cuh\"\n");
  const auto path =
      write("k.cu",
            "#include \"part.cuh\"\n#include <elsewhere.h>\n#include \"missing.h\"\n#include \"../out.h\"\n"
            "__global__ void k() {}\n");
  const Unit unit = read_kernel_file(path);
  ASSERT_EQ(unit.headers.size(), 2u);
  EXPECT_EQ(unit.headers[0].name, "part.cuh");
  EXPECT_EQ(unit.headers[1].name, "parts/inner.cuh");
  EXPECT_EQ(unit.headers[1].text,
            "#line 1 \"" + (path.parent_path() / "parts/inner.cuh").string() + "\"\nint inner;\n");
}

TEST_F(KernelFile, WithoutAKernelIsRefused) {
  EXPECT_EQ(code_of(write("none.cu", "// __global__ void k() {}\nint x;\n")), ErrorCode::not_found);
  EXPECT_EQ(code_of(write("empty.cu", "")), ErrorCode::not_found);
}

TEST_F(KernelFile, WhatCannotBeReadIsRefused) {
  EXPECT_EQ(code_of(folder_ / ""), ErrorCode::io_failed);
  EXPECT_EQ(code_of("/no/such/file.cu"), ErrorCode::io_failed);
}

TEST(GlobalFunctions, AreFoundBehindTheirAttributes) {
  EXPECT_THAT(
      global_functions("/* __global__ void no(); */ extern \"C\" __global__ void __launch_bounds__(128, 2) a(int);\n"
                       "template <class T> __global__ void b(T* x) { f(x); }\n__global__\nvoid\nc() {}"),
      ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace hone::test
