// Arrays of several dimensions: headers that are written, axes, and files that appear whole or not at all.
#include <gmock/gmock.h>

#include <hone/error.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/runtime/support/fake_device.h"
#include "tests/support/names.h"
#include "tests/tuner/support.h"
#include "tuner/array/axis.h"
#include "tuner/array/npy.h"
#include "tuner/array/output_file.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

using test::Names;
using Shape = std::vector<std::int64_t>;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  } catch (const CommandError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(MakeNpyHeader, ReadsBackAsWhatWasWritten) {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 4}, Shape{2, 0, 5}, Shape{std::int64_t{1} << 40, 3, 4}})
    for (const DType dtype : {DType::f16, DType::f64, DType::u8, DType::boolean}) {
      const std::string bytes = make_npy_header(dtype, shape);
      EXPECT_EQ(bytes.size() % 64, 0U);
      EXPECT_EQ(bytes.back(), '\n');
      std::istringstream in(bytes);
      const NpyHeader header = read_npy_header(in);
      EXPECT_EQ(header.dtype, dtype);
      EXPECT_EQ(header.shape, shape);
      EXPECT_FALSE(header.fortran_order);
      EXPECT_EQ(header.data_offset, static_cast<std::int64_t>(bytes.size()));
    }
}

TEST(MakeNpyHeader, IsWhatNumpyWrites) {
  const std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
  EXPECT_EQ(make_npy_header(DType::f32, Shape{3, 4}), testing::npy_header(text));
}

TEST(MakeNpyHeader, RefusesWhatNumpyDoesNotHave) {
  EXPECT_THAT(message_of([] { make_npy_header(DType::bf16, {}); }), Names("NumPy", "no bf16"));
}

TEST(Axis, SplitsIntoOuterAlongAndInner) {
  EXPECT_EQ(split_at(Shape{3, 4}, 1), (AxisSplit{3, 4, 1}));
  EXPECT_EQ(split_at(Shape{3, 4}, 0), (AxisSplit{1, 3, 4}));
  EXPECT_EQ(split_at(Shape{2, 3, 4, 5}, 2), (AxisSplit{6, 4, 5}));
  EXPECT_EQ(split_at(Shape{9}, 0), (AxisSplit{1, 9, 1}));
  EXPECT_EQ(split_at(Shape{0, 4}, 1), (AxisSplit{0, 4, 1}));
}

TEST(Axis, CountsFromEitherEnd) {
  InputFile input;
  input.path = "a.npy";
  input.shape = {2, 3, 4};
  EXPECT_EQ(parse_axis("0", input), 0U);
  EXPECT_EQ(parse_axis("-1", input), 2U);
  EXPECT_EQ(parse_axis("-3", input), 0U);
  EXPECT_EQ(message_of([&] { parse_axis("3", input); }),
            "'a.npy' has the shape (2, 3, 4), so there is no axis 3; give one from -3 to 2");
  EXPECT_THAT(message_of([&] { parse_axis("-4", input); }), Names("no axis", "-4"));
  EXPECT_THAT(message_of([&] { parse_axis("rows", input); }), Names("'rows'", "no axis"));
  EXPECT_THAT(message_of([&] { parse_axis("1x", input); }), Names("'1x'", "no axis"));
  EXPECT_THAT(message_of([&] { parse_axis("99999999999999999999", input); }), Names("no axis"));
  input.shape = {};
  EXPECT_EQ(message_of([&] { parse_axis("0", input); }), "'a.npy' has the shape (), so there is no axis 0");
}

TEST(Axis, FortranOrderIsRefusedByName) {
  const testing::TemporaryFolder folder;
  const std::string data(6 * 4, '\0');
  const auto open = [&](const std::string& shape) {
    testing::write_file(
        folder / "f.npy",
        testing::npy_header("{'descr': '<f4', 'fortran_order': True, 'shape': " + shape + ", }") + data);
    return open_input(folder / "f.npy", std::nullopt);
  };
  const InputFile matrix = open("(2, 3)");
  EXPECT_EQ(matrix.shape, (Shape{2, 3}));
  EXPECT_THAT(message_of([&] { require_c_order(matrix); }), Names("Fortran", "order"));
  EXPECT_THAT(message_of([&] { require_c_order(matrix); }), Names("numpy.ascontiguousarray"));
  require_c_order(open("(6,)"));  // one axis has one order
}

class OutputFileTest : public ::testing::Test {
 protected:
  void save(OutputFile& output, const Shape& shape, const std::string& bytes) {
    output.save(shape, bytes.data(), device_, nullptr);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }

  testing::TemporaryFolder folder_;
  FakeDevice device_;
};

TEST_F(OutputFileTest, NpyHasAHeaderAndOthersDoNot) {
  const std::string bytes = "abcdefghijklmnopqrstuvwx";
  OutputFile npy(folder_ / "a.npy", DType::f32, std::cout);
  save(npy, {2, 3}, bytes);
  EXPECT_EQ(content_of(folder_ / "a.npy"), make_npy_header(DType::f32, Shape{2, 3}) + bytes);
  EXPECT_EQ(open_input(folder_ / "a.npy", std::nullopt).shape, (Shape{2, 3}));
  OutputFile raw(folder_ / "a.bin", DType::bf16, std::cout);
  save(raw, {12}, bytes);
  EXPECT_EQ(content_of(folder_ / "a.bin"), bytes);
  EXPECT_EQ(files(), 2U);
}

TEST_F(OutputFileTest, LargeArraysAreWrittenInPieces) {
  const std::string bytes((std::size_t{9} << 20) + 3, 'x');
  OutputFile output(folder_ / "a.bin", DType::i8, std::cout);
  save(output, {static_cast<std::int64_t>(bytes.size())}, bytes);
  EXPECT_EQ(content_of(folder_ / "a.bin"), bytes);
}

TEST_F(OutputFileTest, AnEmptyArrayIsAHeader) {
  OutputFile output(folder_ / "a.npy", DType::f32, std::cout);
  save(output, {0, 5}, "");
  EXPECT_EQ(content_of(folder_ / "a.npy"), make_npy_header(DType::f32, Shape{0, 5}));
}

TEST_F(OutputFileTest, WhatWasThereStaysUntilTheNewOneIsWhole) {
  testing::write_file(folder_ / "a.npy", "before");
  {
    OutputFile abandoned(folder_ / "a.npy", DType::f32, std::cout);
    EXPECT_EQ(content_of(folder_ / "a.npy"), "before");
  }
  EXPECT_EQ(files(), 1U);
  for (const DType dtype : {DType::bf16, DType::f8e4m3})
    EXPECT_THAT(message_of([&] { OutputFile(folder_ / "a.npy", dtype, std::cout); }),
                Names("a.npy", "NumPy", "no " + std::string(info(dtype).name), "raw"));
  EXPECT_EQ(content_of(folder_ / "a.npy"), "before");
}

TEST_F(OutputFileTest, WhatCannotBeWrittenIsRefusedAtOnce) {
  EXPECT_THAT(message_of([&] { OutputFile(folder_ / "no" / "a.npy", DType::f32, std::cout); }),
              Names("No such", "directory"));
  EXPECT_THAT(message_of([&] { OutputFile(folder_.path(), DType::f32, std::cout); }), Names("directory"));
}

}  // namespace
}  // namespace hone::tuner
