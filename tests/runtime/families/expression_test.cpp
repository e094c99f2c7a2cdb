#include "runtime/families/spec/expression.h"

#include <gmock/gmock.h>

#include <array>

#include <hone/error.h>

#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

constexpr std::array<ExpressionName, 3> kNames{
    {{.name = "a", .variable = 0}, {.name = "fast", .variable = -1, .constant = 1}, {.name = "order", .variable = 1}}};

std::int64_t value(std::string_view text, std::int64_t a = 7, std::int64_t order = 3) {
  return Expression("where", text, kNames).evaluate(std::array{a, order});
}

std::string error_of(std::string_view text) {
  try {
    value(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Expression, HasThePrecedenceOfC) {
  EXPECT_EQ(value("1 + 2 * a"), 15);
  EXPECT_EQ(value("(1 + 2) * a"), 21);
  EXPECT_EQ(value("10 - 3 - 2"), 5);
  EXPECT_EQ(value("a / 2 % 2"), 1);
  EXPECT_EQ(value("a // 2"), 3);
  EXPECT_EQ(value("-a + 1"), -6);
  EXPECT_EQ(value("!a == 0"), 1);
  EXPECT_EQ(value("1 || 0 && 0"), 1);
}

TEST(Expression, TakesWordsChainsAndFunctions) {
  EXPECT_EQ(value("a == 7 and not order == 4"), 1);
  EXPECT_EQ(value("a==6 or order==3"), 1);  // not the beginning of the name
  EXPECT_EQ(value("1 < a <= 7"), 1);
  EXPECT_EQ(value("1 < a < 7"), 0);
  EXPECT_EQ(value("9 > a > order > 2"), 1);
  EXPECT_EQ(value("9 > a > order > 4"), 0);
  EXPECT_EQ(value("min(a, order) + max(a, order)"), 10);
  EXPECT_EQ(value("ceil_div(a, order)"), 3);
  EXPECT_EQ(value("order != fast"), 1);
}

TEST(Expression, ComparesNamesAndDoesNotComputeWithThem) {
  const std::array<ExpressionName, 2> names{
      {{.name = "layout", .variable = 0, .has_names = true}, {.name = "wide", .constant = 1, .has_names = true}}};
  const std::array<std::int64_t, 1> wide{1};
  const auto of = [&](std::string_view text) { return Expression("block", text, names).evaluate(wide); };
  EXPECT_EQ(of("32 + 32 * (layout == wide)"), 64);
  for (const char* const text : {"layout", "32 * layout", "-layout == 1", "wide + 1", "max(layout, 32)", "!layout"})
    EXPECT_THROW(of(text), Error) << text;
}

TEST(Expression, KnowsWhatItUses) { EXPECT_EQ(Expression("where", "2 * order", kNames).used_variables(), 2u); }

TEST(Expression, SaysWhereItIsWrong) {
  EXPECT_THAT(error_of("a + blok"), Names("where", "column 5", "blok", "a, order"));
  EXPECT_THAT(error_of("a +"), Names("column 4"));
  EXPECT_THAT(error_of("(a"), Names("column 3", ")"));
  EXPECT_THAT(error_of("a a"), Names("column 3"));
  EXPECT_THAT(error_of("2x"), Names("2x"));
  EXPECT_THAT(error_of(std::string(100, '(') + "a"), Names("deep"));
  EXPECT_THAT(error_of("a / (order - 3)"), Names("zero"));
  EXPECT_THAT(error_of("9223372036854775807 * a"), Names("overflow"));
}

}  // namespace
}  // namespace hone
