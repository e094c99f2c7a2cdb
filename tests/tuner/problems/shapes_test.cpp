#include "tuner/problems/shapes.h"

#include <gmock/gmock.h>

#include <hone/tuned_reduce.h>

#include "tests/support/names.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

using ::testing::ElementsAre;
using test::Names;

std::string refusal_of_shapes(const std::string& text) {
  try {
    parse_shapes(text);
  } catch (const CommandError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "no refusal";
}

TypedShape shape(std::initializer_list<std::int64_t> extents) { return extents; }

TEST(ParseShapes, RangesAreOctaves) {
  EXPECT_THAT(parse_shapes("2^10..2^13"), ElementsAre(shape({1024}), shape({2048}), shape({4096}), shape({8192})));
  EXPECT_THAT(parse_shapes("1000..5000"), ElementsAre(shape({1000}), shape({2000}), shape({4000})));
  EXPECT_THAT(parse_shapes("7..7"), ElementsAre(shape({7})));
  EXPECT_THAT(parse_shapes("2^52..2^53"), ElementsAre(shape({std::int64_t{1} << 52}), shape({std::int64_t{1} << 53})));
}

TEST(ParseArrayShape, HasAnyNumberOfAxesAndEmptyOnes) {
  EXPECT_THAT(parse_array_shape("7"), ElementsAre(7));
  EXPECT_THAT(parse_array_shape("2x3x4x5"), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(parse_array_shape("2^4 × 1Kix0"), ElementsAre(16, 1024, 0));
  EXPECT_THAT(parse_array_shape("0x8"), ElementsAre(0, 8));
  for (const std::string text : {"", "x", "2x", "2x-3", "8/64", "1..4", "2,3", "4@8", "2^30x2^30", "0x0x"})
    EXPECT_THROW(parse_array_shape(text), CommandError) << text;
}

TEST(ParseShapes, ListsAreSortedAndUnique) {
  EXPECT_THAT(parse_shapes("4096, 1000 4096,1Ki"), ElementsAre(shape({1000}), shape({1024}), shape({4096})));
}

TEST(ParseShapes, EveryExtentMayBeARangeOrAList) {
  EXPECT_THAT(parse_shapes("2^10..2^14:4x64"), ElementsAre(shape({1024, 64}), shape({4096, 64}), shape({16384, 64})));
  EXPECT_THAT(parse_shapes("8/64x1Ki"), ElementsAre(shape({8, 1024}), shape({64, 1024})));
  EXPECT_THAT(parse_shapes("2x3/5..10x7"), ElementsAre(shape({2, 3, 7}), shape({2, 5, 7}), shape({2, 10, 7})));
}

TEST(ParseShapes, TallIsNotFlat) {
  EXPECT_THAT(parse_shapes("1024x1"), ElementsAre(shape({1024, 1})));
  EXPECT_THAT(parse_shapes("1x1024"), ElementsAre(shape({1, 1024})));
  EXPECT_EQ(parse_shapes("1024x1,1x1024,1024").size(), 3U);
}

TEST(ParseShapes, BlanksAndTimesSignsMayStandBetween) {
  EXPECT_THAT(parse_shapes("2^10 x 64, 8 × 8 @ 64"), ElementsAre(shape({8, 8}), shape({1024, 64})));
  EXPECT_THAT(parse_shapes("16 32x2 4"), ElementsAre(shape({4}), shape({16}), shape({32, 2})));
}

TEST(ParseShapes, ABoundLeavesOutWhatHasMoreOrFewerElements) {
  EXPECT_THAT(parse_shapes("1..16:4x1..16:4@16..64"),
              ElementsAre(shape({1, 16}), shape({4, 4}), shape({4, 16}), shape({16, 1}), shape({16, 4})));
  // Products beyond 63 bits are more than any bound.
  EXPECT_THAT(parse_shapes("2/2^50x2/2^50@4"), ElementsAre(shape({2, 2})));
  EXPECT_THAT(refusal_of_shapes("8x8@32"), Names("no shape", "bound"));
}

TEST(ParseShapes, RefusesWhatIsNone) {
  EXPECT_THAT(refusal_of_shapes(","), Names("size"));
  EXPECT_THAT(refusal_of_shapes("2^20..2^10"), Names("swap", "ends"));
  EXPECT_THAT(refusal_of_shapes("2^20.."), Names("empty"));
  EXPECT_THAT(refusal_of_shapes("1024x"), Names("'1024x'", "shape", "extent"));
  EXPECT_THAT(refusal_of_shapes("x64"), Names("extent", "missing"));
  EXPECT_THAT(refusal_of_shapes("-3x64"), Names("negative"));
  EXPECT_THAT(refusal_of_shapes("0x64"), Names("first extent", "0", "hexadecimal"));
  EXPECT_THAT(refusal_of_shapes("0"), Names("'0'", "1 element"));
  EXPECT_THAT(refusal_of_shapes("0"), ::testing::Not(::testing::HasSubstr("hexadecimal")));
  EXPECT_THAT(refusal_of_shapes("8x8x8x8"), Names("4 extents", "no kernel", "three"));
  EXPECT_THAT(refusal_of_shapes("2^30x2^30"), Names("beyond", "2^53", "elements"));
  EXPECT_THAT(refusal_of_shapes("2^60x2"), Names("beyond", "2^53"));
  EXPECT_THAT(refusal_of_shapes("64:2x64"), Names("':'", "factor"));
  EXPECT_THAT(refusal_of_shapes("2..64:1"), Names("factor", "2"));
  EXPECT_THAT(refusal_of_shapes("1..2^40x1..2^40x1..2^40"), Names("65536 shapes"));
  EXPECT_THAT(refusal_of_shapes("8x8@64..16"), Names("swap", "ends"));
  EXPECT_THAT(refusal_of_shapes("8x8@"), Names("''", "size"));
  EXPECT_THAT(refusal_of_shapes("8by8"), Names("'by8'", "no unit"));
}

TEST(ExtentsOf, AMatrixIsABatchOfOneAndNothingElseIsGuessed) {
  EXPECT_EQ(extents_of({4, 5}, 2), (Extents{4, 5, 1}));
  EXPECT_EQ(extents_of({4, 5}, 3), (Extents{1, 4, 5}));
  EXPECT_EQ(extents_of({3, 4, 5}, 3), (Extents{3, 4, 5}));
  EXPECT_EQ(extents_of({4}, 1), (Extents{4, 1, 1}));
  EXPECT_FALSE(extents_of({4}, 2));
  EXPECT_FALSE(extents_of({4}, 3));
  EXPECT_FALSE(extents_of({4, 1}, 1));
  EXPECT_FALSE(extents_of({3, 4, 5}, 2));
}

TEST(FormatShape, ReadsBackAsTheSameShape) {
  EXPECT_EQ(format_shape({8192, 64, 1}, 2), "2^13x64");
  EXPECT_EQ(format_shape({1, 100, 1 << 20}, 3), "100x2^20");
  EXPECT_EQ(format_shape({2, 100, 1}, 3), "2x100x1");
  EXPECT_EQ(format_shape(reduce_problem(ReduceOp::sum, DType::f32, 1 << 20)), "2^20");
}

}  // namespace
}  // namespace hone::tuner
