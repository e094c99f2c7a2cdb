#include "runtime/families/reduce_reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace hone::reduce_reference {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kChain = 64;
constexpr std::int64_t kPeriod = 1048573;

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <class T>
std::vector<T> pattern_of(std::int64_t n, std::string_view kind) {
  const std::vector<std::byte> bytes = input_pattern(kDTypeOf<T>, n, kind);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// What verify() says when a kernel gives `found` for the pattern repeated to n elements.
template <class T, class Result>
std::string verdict(ReduceOp op, const std::vector<T>& pattern, std::int64_t n, Result found) {
  return verify(op, kDTypeOf<T>, n, kChain, bytes_of(pattern), bytes_of(std::vector<Result>{found}));
}

template <class T>
long double repeated_sum(const std::vector<T>& pattern, std::int64_t n) {
  long double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += pattern[static_cast<std::size_t>(i) % pattern.size()];
  return sum;
}

TEST(ReduceReference, AcceptsTheRightSum) {
  const std::vector<float> pattern{1, 2, 3.5f};
  EXPECT_EQ(verdict(ReduceOp::sum, pattern, 3, 6.5f), "");
  EXPECT_NE(verdict(ReduceOp::sum, pattern, 3, 6.0f), "");
}

TEST(ReduceReference, SaysWhatWasExpectedFoundAndAllowed) {
  const std::string text = verdict(ReduceOp::max, std::vector<float>{1, 4}, 2, 3.0f);
  EXPECT_EQ(text, "expected 4, found 3, allowed nothing else");
}

template <class T>
class ReduceReferenceFloats : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(ReduceReferenceFloats, Floats);

TYPED_TEST(ReduceReferenceFloats, SmallIntegersShowOneMissingOrRepeatedElement) {
  for (std::int64_t n : {std::int64_t{1}, std::int64_t{1000}, kPeriod - 1, kPeriod, 3 * kPeriod + 17}) {
    const auto pattern = pattern_of<TypeParam>(n, "small_integers");
    const auto exact = static_cast<TypeParam>(repeated_sum(pattern, n));
    EXPECT_EQ(verdict(ReduceOp::sum, pattern, n, exact), "") << n;
    for (std::size_t i = 0; i < pattern.size(); i += std::max<std::size_t>(1, pattern.size() / 10)) {
      ASSERT_NE(pattern[i], 0);
      EXPECT_NE(verdict(ReduceOp::sum, pattern, n, exact - pattern[i]), "") << "missing " << i << " of " << n;
      EXPECT_NE(verdict(ReduceOp::sum, pattern, n, exact + pattern[i]), "") << "twice " << i << " of " << n;
    }
  }
}

TYPED_TEST(ReduceReferenceFloats, SumsOfSmallIntegersAreExactHoweverTheyAreOrdered) {
  const std::int64_t n = 5 * kPeriod + 3;
  const auto pattern = pattern_of<TypeParam>(n, "small_integers");
  TypeParam in_order = 0;
  std::vector<TypeParam> strided(4096, 0);
  for (std::int64_t i = 0; i < n; ++i) {
    const TypeParam x = pattern[static_cast<std::size_t>(i % kPeriod)];
    in_order += x;
    strided[static_cast<std::size_t>(i % 4096)] += x;
  }
  EXPECT_EQ(verdict(ReduceOp::sum, pattern, n, in_order), "");
  EXPECT_EQ(verdict(ReduceOp::sum, pattern, n, std::accumulate(strided.begin(), strided.end(), TypeParam{0})), "");
}

TYPED_TEST(ReduceReferenceFloats, UniformSumsMayBeOffByRoundingAlone) {
  const std::int64_t n = 2 * kPeriod + 100;
  const auto pattern = pattern_of<TypeParam>(n, "uniform");
  std::vector<TypeParam> partial(65536, 0);  // chains of 32
  for (std::int64_t i = 0; i < n; ++i)
    partial[static_cast<std::size_t>(i % 65536)] += pattern[static_cast<std::size_t>(i % kPeriod)];
  for (std::size_t active = partial.size() / 2; active > 0; active /= 2)
    for (std::size_t i = 0; i < active; ++i) partial[i] += partial[i + active];
  EXPECT_EQ(verdict(ReduceOp::sum, pattern, n, partial[0]), "");

  const auto exact = static_cast<TypeParam>(repeated_sum(pattern, n));
  const TypeParam allowed = kChain * std::numeric_limits<TypeParam>::epsilon() * static_cast<TypeParam>(n);
  EXPECT_NE(verdict(ReduceOp::sum, pattern, n, exact + allowed), "");
}

TYPED_TEST(ReduceReferenceFloats, ALostNanIsSeen) {
  for (std::int64_t n : {std::int64_t{1}, std::int64_t{777}, kPeriod + 5}) {
    const auto pattern = pattern_of<TypeParam>(n, "nan");
    const auto nan = std::numeric_limits<TypeParam>::quiet_NaN();
    for (ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max}) {
      EXPECT_EQ(verdict(op, pattern, n, nan), "");
      EXPECT_NE(verdict(op, pattern, n, TypeParam{0.5}), "");
      EXPECT_NE(verdict(op, pattern, n, std::numeric_limits<TypeParam>::infinity()), "");
    }
  }
}

TYPED_TEST(ReduceReferenceFloats, AnInventedNanIsSeen) {
  const auto nan = std::numeric_limits<TypeParam>::quiet_NaN();
  for (std::string_view kind : {"uniform", "small_integers", "cancelling"})
    for (ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max})
      EXPECT_NE(verdict(op, pattern_of<TypeParam>(1000, kind), 1000, nan), "") << kind;
}

TYPED_TEST(ReduceReferenceFloats, InfinitiesFollowIeeeArithmetic) {
  const auto infinity = std::numeric_limits<TypeParam>::infinity();
  const auto nan = std::numeric_limits<TypeParam>::quiet_NaN();
  const std::int64_t n = 500;
  const auto one = pattern_of<TypeParam>(n, "infinity");
  EXPECT_EQ(verdict(ReduceOp::sum, one, n, infinity), "");
  EXPECT_NE(verdict(ReduceOp::sum, one, n, -infinity), "");
  EXPECT_NE(verdict(ReduceOp::sum, one, n, std::numeric_limits<TypeParam>::max()), "");
  EXPECT_EQ(verdict(ReduceOp::max, one, n, infinity), "");
  EXPECT_NE(verdict(ReduceOp::min, one, n, infinity), "");
  const auto both = pattern_of<TypeParam>(n, "both_infinities");
  EXPECT_EQ(verdict(ReduceOp::sum, both, n, nan), "");
  EXPECT_NE(verdict(ReduceOp::sum, both, n, TypeParam{0}), "");
  EXPECT_EQ(verdict(ReduceOp::min, both, n, -infinity), "");
  EXPECT_EQ(verdict(ReduceOp::max, both, n, infinity), "");
}

TYPED_TEST(ReduceReferenceFloats, AWrongIdentityIsSeen) {
  const std::vector<TypeParam> negative{-3, -2, -7};
  EXPECT_EQ(verdict(ReduceOp::max, negative, 3, TypeParam{-2}), "");
  EXPECT_NE(verdict(ReduceOp::max, negative, 3, TypeParam{0}), "");
  EXPECT_NE(verdict(ReduceOp::max, negative, 3, std::numeric_limits<TypeParam>::min()), "");
  EXPECT_NE(verdict(ReduceOp::min, std::vector<TypeParam>{3, 2}, 2, TypeParam{0}), "");
}

TYPED_TEST(ReduceReferenceFloats, WithoutElementsTheIdentityIsExpected) {
  const auto infinity = std::numeric_limits<TypeParam>::infinity();
  const std::vector<TypeParam> none;
  EXPECT_EQ(verdict(ReduceOp::sum, none, 0, TypeParam{0}), "");
  EXPECT_NE(verdict(ReduceOp::sum, none, 0, TypeParam{1}), "");
  EXPECT_EQ(verdict(ReduceOp::min, none, 0, infinity), "");
  EXPECT_EQ(verdict(ReduceOp::max, none, 0, -infinity), "");
  EXPECT_NE(verdict(ReduceOp::max, none, 0, std::numeric_limits<TypeParam>::lowest()), "");
}

template <class T>
class ReduceReferenceIntegers : public testing::Test {};
using Integers = testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(ReduceReferenceIntegers, Integers);

TYPED_TEST(ReduceReferenceIntegers, SumsAreExactModuloTwoToThe64) {
  for (std::string_view kind : {"uniform", "extreme"}) {
    for (std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000}, 2 * kPeriod + 9}) {
      const auto pattern = pattern_of<TypeParam>(n, kind);
      std::uint64_t sum = 0;
      for (std::int64_t i = 0; i < n; ++i)
        sum += static_cast<std::uint64_t>(static_cast<std::int64_t>(pattern[static_cast<std::size_t>(i % kPeriod)]));
      EXPECT_EQ(verdict(ReduceOp::sum, pattern, n, static_cast<std::int64_t>(sum)), "") << kind << n;
      EXPECT_NE(verdict(ReduceOp::sum, pattern, n, static_cast<std::int64_t>(sum + 1)), "") << kind << n;
    }
  }
}

TYPED_TEST(ReduceReferenceIntegers, BoundsAreExpectedOfNoElements) {
  using Limits = std::numeric_limits<TypeParam>;
  const std::vector<TypeParam> none;
  EXPECT_EQ(verdict(ReduceOp::min, none, 0, Limits::max()), "");
  EXPECT_EQ(verdict(ReduceOp::max, none, 0, Limits::min()), "");
  EXPECT_NE(verdict(ReduceOp::max, none, 0, TypeParam{0}), "");
  EXPECT_EQ(verdict(ReduceOp::sum, none, 0, std::int64_t{0}), "");
}

TEST(ReduceReference, SumsOfI64WrapAround) {
  const std::vector<std::int64_t> pattern{std::numeric_limits<std::int64_t>::max(), 1};
  EXPECT_EQ(verdict(ReduceOp::sum, pattern, 2, std::numeric_limits<std::int64_t>::min()), "");
  EXPECT_EQ(verdict(ReduceOp::sum, pattern, 4, std::int64_t{0}), "");
}

TEST(ReduceReference, SumsOfI32DoNot) {
  const std::vector<std::int32_t> pattern{std::numeric_limits<std::int32_t>::max(), 1};
  EXPECT_EQ(verdict(ReduceOp::sum, pattern, 2, std::int64_t{2147483648}), "");
  EXPECT_NE(verdict(ReduceOp::sum, pattern, 2, std::int64_t{-2147483648}), "");
}

TEST(ReduceReference, RepeatsBeyondTwoToThe32Elements) {
  const std::vector<std::int32_t> pattern{1, 2, 3};
  const std::int64_t n = (std::int64_t{1} << 33) + 1;
  const std::int64_t exact = n / 3 * 6 + (n % 3 == 1 ? 1 : n % 3 == 2 ? 3 : 0);
  EXPECT_EQ(verdict(ReduceOp::sum, pattern, n, exact), "");
  EXPECT_NE(verdict(ReduceOp::sum, pattern, n, exact - 1), "");
}

TEST(ReduceReference, ExtremesCompareExactly) {
  const auto pattern = pattern_of<double>(kPeriod, "uniform");
  const double smallest = *std::min_element(pattern.begin(), pattern.end());
  EXPECT_EQ(verdict(ReduceOp::min, pattern, kPeriod, smallest), "");
  EXPECT_NE(verdict(ReduceOp::min, pattern, kPeriod, std::nextafter(smallest, 1.0)), "");
}

TEST(ReduceReference, PatternsAreTheSameEveryTime) {
  for (const DTypeInfo& dtype : kDTypes)
    for (std::string_view kind : input_kinds(dtype.dtype))
      EXPECT_EQ(input_pattern(dtype.dtype, 5000, kind), input_pattern(dtype.dtype, 5000, kind)) << kind;
}

TEST(ReduceReference, EveryKindHoldsWhatItSays) {
  const auto nan = pattern_of<float>(300, "nan");
  EXPECT_EQ(std::count_if(nan.begin(), nan.end(), [](float x) { return x != x; }), 1);
  const auto both = pattern_of<float>(300, "both_infinities");
  EXPECT_EQ(std::count(both.begin(), both.end(), kInfinity), 1);
  EXPECT_EQ(std::count(both.begin(), both.end(), -kInfinity), 1);
  EXPECT_NE(verdict(ReduceOp::sum, both, 300, kInfinity), "");
  EXPECT_EQ(verdict(ReduceOp::sum, both, 300, kNan), "");
  const auto cancelling = pattern_of<double>(300, "cancelling");
  EXPECT_EQ(repeated_sum(cancelling, 300), 0);
}

}  // namespace
}  // namespace hone::reduce_reference
