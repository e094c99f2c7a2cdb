#include <hone/problem.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>

#include <hone/error.h>
#include <hone/tuned_reduce.h>

#include "tests/runtime/families/support.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

TEST(SizeClass, OneClassHoldsAllSmallSizes) {
  for (std::int64_t extent : {0, 1, 2, 31, 32, 255, 256, 257, 278, 279}) EXPECT_EQ(size_class(extent), 32) << extent;
  EXPECT_EQ(size_class(280), 33);
  EXPECT_EQ(size_range(32), (SizeRange{0, 279}));
}

TEST(SizeClass, PowersOfTwoAndWhatIsHalfwayBetweenLieInsideTheirClasses) {
  for (int k = kSmallestSizeClass / kClassesPerOctave; k <= 62; ++k) {
    const std::int64_t power = std::int64_t{1} << k;
    const int of_power = kClassesPerOctave * k;
    for (const std::int64_t n : {power - 1, power, power + 1, power / 16 * 17}) EXPECT_EQ(size_class(n), of_power) << n;
    for (const std::int64_t n : {power / 8 * 9, power / 4 * 5}) EXPECT_EQ(size_class(n), of_power + 1) << n;
    for (const std::int64_t n : {power / 16 * 21, power / 2 * 3}) EXPECT_EQ(size_class(n), of_power + 2) << n;
    for (const std::int64_t n : {power / 8 * 13, power / 16 * 29}) EXPECT_EQ(size_class(n), of_power + 3) << n;
  }
}

TEST(SizeClass, CentersLieInsideTheirClasses) {
  for (int c = kSmallestSizeClass; c < kLargestSizeClass; ++c) EXPECT_EQ(size_class(class_center(c)), c);
  for (int c = 0; c < kLargestSizeClass; c += kClassesPerOctave)
    EXPECT_EQ(size_classes({1, class_center(c), 7})[1], c);
  EXPECT_EQ(class_center(40), 1024);
  EXPECT_EQ(class_center(41), 1217);
  EXPECT_EQ(class_center(42), 1448);
  EXPECT_EQ(class_center(43), 1722);
  EXPECT_EQ(class_center(kLargestSizeClass), class_center(kLargestSizeClass - 1));
}

TEST(SizeClass, RangesAreContiguousAndHoldTheirOwnExtents) {
  std::int64_t next = 0;
  for (int k = kSmallestSizeClass; k <= kLargestSizeClass; ++k) {
    const SizeRange range = size_range(k);
    EXPECT_EQ(range.first, next) << k;
    EXPECT_LE(range.first, range.last) << k;
    EXPECT_EQ(size_class(range.first), k);
    EXPECT_EQ(size_class(range.last), k);
    if (k == kLargestSizeClass) {
      EXPECT_EQ(range.last, kLargest);
      break;
    }
    EXPECT_EQ(size_class(range.last + 1), k + 1);
    next = range.last + 1;
  }
}

TEST(SizeClass, BordersOfLoneExtentsAreAnEighthOfAnOctaveFromTheCenters) {
  for (int c = kSmallestSizeClass; c < kLargestSizeClass; ++c) {
    const long double border = std::exp2(static_cast<long double>(c) / kClassesPerOctave + 0.125L);
    EXPECT_EQ(size_range(c).last, static_cast<std::int64_t>(std::floor(border))) << c;
  }
}

TEST(SizeClass, BordersOfShapesAreHalfwayBetweenPowersOnALogarithmicScale) {
  for (int k = 1; k <= 62; ++k) {
    const long double border = std::exp2(static_cast<long double>(k) + 0.5L);
    EXPECT_EQ(size_ranges({3, std::int64_t{1} << k, 1})[1].last, static_cast<std::int64_t>(std::floor(border))) << k;
  }
}

TEST(SizeClass, TheLargestExtentHasAClass) {
  EXPECT_EQ(size_class(kLargest), kLargestSizeClass);
  EXPECT_EQ(size_classes({2, kLargest, 1})[1], kLargestSizeClass);
}

TEST(SizeClass, ShapesAreToldApartInEveryExtentFromOneOn) {
  EXPECT_EQ(size_classes({1024, 1, 1}), (std::array{40, 0, 0}));
  EXPECT_EQ(size_classes({1500, 1, 1}), (std::array{42, 0, 0}));
  EXPECT_EQ(size_classes({5, 1, 1}), (std::array{32, 0, 0}));
  EXPECT_EQ(size_classes({1, 1024, 1}), (std::array{0, 40, 0}));
  EXPECT_EQ(size_classes({5, 8, 1}), (std::array{8, 12, 0}));
  EXPECT_EQ(size_classes({0, 1, 6}), (std::array{0, 0, 12}));
}

TEST(SizeClass, RangesOfShapesHoldWhatSharesTheirClasses) {
  EXPECT_EQ(size_ranges({1024, 1, 1}), (std::array{size_range(40), SizeRange{1, 1}, SizeRange{1, 1}}));
  EXPECT_EQ(size_ranges({1024, 7, 1}), (std::array{SizeRange{725, 1448}, SizeRange{6, 11}, SizeRange{1, 1}}));
  EXPECT_EQ(size_ranges({0, 2, 3}), (std::array{SizeRange{0, 0}, SizeRange{2, 2}, SizeRange{3, 5}}));
  for (std::int64_t extent = 2; extent < 100; ++extent) {
    const SizeRange range = size_ranges({1, extent, 1})[1];
    for (std::int64_t other = 2; other < 200; ++other)
      EXPECT_EQ(range.first <= other && other <= range.last,
                size_classes({1, other, 1}) == size_classes({1, extent, 1})) << extent << " " << other;
  }
}

const void* at(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

TEST(Alignment, IsTheLargestPowerOfTwoUpToSixteen) {
  EXPECT_EQ(alignment_of(at(0x1001)), 1u);
  EXPECT_EQ(alignment_of(at(0x1002)), 2u);
  EXPECT_EQ(alignment_of(at(0x1004)), 4u);
  EXPECT_EQ(alignment_of(at(0x100c)), 4u);
  EXPECT_EQ(alignment_of(at(0x1008)), 8u);
  EXPECT_EQ(alignment_of(at(0x1010)), 16u);
  EXPECT_EQ(alignment_of(at(0x1000)), 16u);
  EXPECT_EQ(alignment_of(nullptr), 16u);
}

TEST(DType, ParsesTheNamesOfTheTable) {
  for (const DTypeInfo& dtype : kDTypes) EXPECT_EQ(parse_dtype(dtype.name), dtype.dtype);
}

TEST(DType, TheTableIsIndexedByTheEnum) {
  for (const DTypeInfo& dtype : kDTypes) EXPECT_EQ(info(dtype.dtype).name, dtype.name);
}

TEST(DType, UnknownNamesAreListedBesideTheKnownOnes) {
  for (const char* name : {"", "f8", "F32", "float", " f32", "f32 ", "boolean"}) {
    try {
      parse_dtype(name);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_found);
      EXPECT_THAT(error.what(), Names(std::string("'") + name + "'"));
      EXPECT_THAT(error.what(), Names("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32",
                                      "u64", "bool"));
    }
  }
}

TEST(ReduceOpName, ParsesTheNamesOfTheTable) {
  for (const ReduceOpInfo& op : kReduceOps) EXPECT_EQ(parse_reduce_op(op.name), op.op);
}

TEST(ReduceOpName, UnknownNamesAreListedBesideTheKnownOnes) {
  for (const char* name : {"", "median", "SUM", "summ", "sum "}) {
    try {
      parse_reduce_op(name);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_found);
      EXPECT_THAT(error.what(), Names("sum", "product", "min", "max", "minmax", "argmin"));
    }
  }
}

TEST(ProblemText, NamesWhatDiffersFromTheUsual) {
  EXPECT_EQ(to_string(reduce_problem(ReduceOp::sum, DType::f32, 1048576)), "reduce sum f32 n=1048576");
  EXPECT_EQ(to_string(reduce_problem(ReduceOp::max, DType::i64, 3, 8)), "reduce max i64 n=3 aligned to 8");
  Problem table = reduce_problem(ReduceOp::min, DType::f64, 5);
  table.extents = {5, 7, 1};
  EXPECT_EQ(to_string(table), "reduce min f64 n=5×7");
  table.launch_context = LaunchContext::graph;
  EXPECT_EQ(to_string(table), "reduce min f64 n=5×7 in a graph");
  table.pitches = {8, 0};
  EXPECT_EQ(to_string(table), "reduce min f64 n=5×7 input pitch 8 in a graph");
  table.extents = {5, 1, 3};
  EXPECT_EQ(to_string(table), "reduce min f64 n=5×1×3 input pitch 8 in a graph");
}

}  // namespace
}  // namespace hone
