#include "tuner/array/npy.h"

#include <gmock/gmock.h>
#include <hone/error.h>

#include <sstream>

#include "tests/support/names.h"
#include "tests/tuner/support.h"

namespace hone::tuner {
namespace {

using ::testing::ElementsAre;
using test::Names;
using ::testing::IsEmpty;
using testing::npy_header;

NpyHeader read(const std::string& bytes) {
  std::istringstream in(bytes);
  return read_npy_header(in);
}

std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io_failed);
    return error.what();
  }
  return "";
}

std::string dictionary(const std::string& descr, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
}

TEST(NpyHeader, ReadsEveryFormatVersion) {
  for (const int major : {1, 2, 3}) {
    const std::string bytes = npy_header(dictionary("'<f4'", "(3, 4)"), major);
    const NpyHeader header = read(bytes);
    EXPECT_EQ(header.dtype, DType::f32);
    EXPECT_THAT(header.shape, ElementsAre(3, 4));
    EXPECT_EQ(header.elements, 12);
    EXPECT_EQ(header.data_offset, static_cast<std::int64_t>(bytes.size()));
  }
}

TEST(NpyHeader, ReadsEveryDType) {
  for (const DTypeInfo& known : kDTypes) {
    if (known.npy_name.empty()) continue;  // NumPy has no such type
    EXPECT_EQ(read(npy_header(dictionary("'" + std::string(known.npy_name) + "'", "(1,)"))).dtype, known.dtype);
  }
}

TEST(NpyHeader, ScalarHasOneElement) {
  const NpyHeader header = read(npy_header(dictionary("'<f8'", "()")));
  EXPECT_THAT(header.shape, IsEmpty());
  EXPECT_EQ(header.elements, 1);
}

TEST(NpyHeader, AnExtentOfZeroIsNoElementWhateverTheOthers) {
  EXPECT_EQ(read(npy_header(dictionary("'<f8'", "(9223372036854775807, 0, 9223372036854775807)"))).elements, 0);
}

TEST(NpyHeader, TakesAnyPythonSpellingOfTheDictionary) {
  const NpyHeader header = read(npy_header("{\"shape\":(2 ,3L,),\n \"fortran_order\" : True,'descr':\"<i8\"}"));
  EXPECT_TRUE(header.fortran_order);
  EXPECT_EQ(header.dtype, DType::i64);
  EXPECT_EQ(header.elements, 6);
}

TEST(NpyHeader, LeavesTheStreamAtTheFirstElement) {
  std::istringstream in(npy_header(dictionary("'<f4'", "(1,)")) + "DATA");
  read_npy_header(in);
  std::string rest;
  in >> rest;
  EXPECT_EQ(rest, "DATA");
}

TEST(NpyHeader, RefusesForeignAndTruncatedFiles) {
  const std::string whole = npy_header(dictionary("'<f4'", "(3,)"));
  EXPECT_THAT(refusal("PK\x03\x04 a zip file"), Names("magic"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(refusal(whole.substr(0, length)), Names("truncated")) << length;
  }
}

TEST(NpyHeader, RefusesUnknownVersionsAndAbsurdLengths) {
  std::string version = npy_header(dictionary("'<f4'", "(3,)"));
  version[6] = 4;
  EXPECT_THAT(refusal(version), Names("4.0"));
  EXPECT_THAT(refusal(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)), Names("4294967295 bytes"));
}

TEST(NpyHeader, RefusesElementTypesThatHoneDoesNotReduce) {
  EXPECT_THAT(refusal(npy_header(dictionary("'>f4'", "(3,)"))), Names("a.astype('<f4')"));
  EXPECT_THAT(refusal(npy_header(dictionary("'<f16'", "(3,)"))), Names("reduces"));
  EXPECT_THAT(refusal(npy_header(dictionary("'<c8'", "(3,)"))), Names("complex"));
  EXPECT_THAT(refusal(npy_header(dictionary("'<M8[s]'", "(3,)"))), Names("times"));
  EXPECT_THAT(refusal(npy_header(dictionary("'<U5'", "(3,)"))), Names("strings"));
  EXPECT_THAT(refusal(npy_header(dictionary("'|O'", "(3,)"))), Names("Python", "objects"));
  for (const char* raw : {"'<V2'", "'|V1'"})
    EXPECT_THAT(refusal(npy_header(dictionary(raw, "(3,)"))), Names("--dtype")) << raw;
  EXPECT_THAT(refusal(npy_header(dictionary("''", "(3,)"))), Names("reduces"));
  EXPECT_THAT(refusal(npy_header(dictionary("[('x', '<f4'), ('y', '<f4')]", "(3,)"))), Names("structured"));
}

TEST(NpyHeader, RefusesMalformedDictionaries) {
  for (const char* text :
       {"", "{", "[]", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 1, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 3}", "{'descr': '<f4', 'fortran_order': False, 'shape': (3",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}", "{'descr': '<f4' 'fortran_order': False}",
        "{'descr': '<f4}", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'extra': 1}",
        "{'descr': '<f4', 'descr': '<f4', 'shape': (3,)}", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"}) {
    EXPECT_THAT(refusal(npy_header(text)), Names("malformed")) << text;
  }
}

TEST(NpyHeader, RefusesShapesThatOverflow) {
  EXPECT_THAT(refusal(npy_header(dictionary("'<f4'", "(4294967296, 4294967296)"))), Names("overflows"));
  EXPECT_THAT(refusal(npy_header(dictionary("'<f8'", "(2305843009213693952,)"))), Names("overflows"));
}

}  // namespace
}  // namespace hone::tuner
