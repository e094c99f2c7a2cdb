#include "runtime/families/counts.h"
#include "runtime/families/reduce/reduce_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "tests/runtime/families/serial_reduce.h"

namespace hone::reduce_reference {
namespace {

using testing::StartsWith;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Patterns = std::vector<std::vector<std::byte>>;

using hone::bytes_of;

std::vector<std::byte> bytes_of(const std::vector<bool>& values) {
  std::vector<std::byte> bytes;
  for (bool value : values) bytes.push_back(value ? std::byte{1} : std::byte{0});
  return bytes;
}

std::string describe(const ReduceSpec& spec, std::int64_t n, std::string_view kind) {
  return fmt::format("{} {} in {} to {} n={} {}{}", name(spec.op), info(spec.dtype).name,
                     info(spec.accumulator_dtype()).name, info(spec.result_dtype()).name, n, kind,
                     spec.nan == NanPolicy::ignore ? " NaN ignored" : "");
}

Patterns patterns_of(const ReduceSpec& spec, std::int64_t n, std::string_view kind) {
  Patterns patterns;
  for (int input = 0; input < info(spec.op).inputs; ++input) patterns.push_back(input_pattern(spec, input, n, kind));
  return patterns;
}

/// Returns what verify() says of a serial reduction with a fault.
std::string verdict_of(const ReduceSpec& spec, std::int64_t n, std::string_view kind, Fault fault = {}) {
  const Patterns patterns = patterns_of(spec, n, kind);
  return verify(spec, n, serial_chain(n), patterns, serial_reduce(spec, n, patterns, fault));
}

/// Returns what verify() says when a kernel gives `found` for the elements, once each.
template <class T, class Result>
std::string verdict(ReduceSpec spec, const std::vector<T>& elements, const std::vector<Result>& found,
                    std::int64_t repetitions = 1) {
  spec.dtype = kDTypeOf<T>;
  const Patterns patterns{bytes_of(elements), bytes_of(elements)};
  return verify(spec, static_cast<std::int64_t>(elements.size()) * repetitions, 64, patterns, bytes_of(found));
}

std::vector<ReduceSpec> all_specs() {
  std::vector<ReduceSpec> specs;
  for (const ReduceOpInfo& op : kReduceOps)
    for (const DTypeInfo& dtype : kDTypes)
      if (reduce_supports(op.op, dtype.dtype)) specs.push_back({.op = op.op, .dtype = dtype.dtype});
  return specs;
}

/// With every accumulator and result that may be chosen.
std::vector<ReduceSpec> all_conversions() {
  std::vector<ReduceSpec> specs;
  for (ReduceSpec spec : all_specs())
    for (const DTypeInfo& accumulator : kDTypes)
      for (const DTypeInfo& result : kDTypes) {
        if (!reduce_accepts_accumulator(spec.op, spec.dtype, accumulator.dtype)) continue;
        if (!reduce_accepts_result(spec.op, spec.dtype, accumulator.dtype, result.dtype)) continue;
        spec.accumulator = accumulator.dtype;
        spec.result = result.dtype;
        specs.push_back(spec);
      }
  return specs;
}

bool is_caught(const ReduceSpec& spec, std::int64_t n, Fault fault) {
  const auto kinds = input_kinds(spec);
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](std::string_view kind) { return !verdict_of(spec, n, kind, fault).empty(); });
}

/// True if the result of one element is that of none.
bool one_is_as_good_as_none(const ReduceSpec& spec) {
  const auto kinds = input_kinds(spec);
  return std::all_of(kinds.begin(), kinds.end(), [&](std::string_view kind) {
    const Patterns patterns = patterns_of(spec, 1, kind);
    return serial_reduce(spec, 1, patterns) == serial_reduce(spec, 0, patterns);
  });
}

bool is_index(ReduceOp op) { return op == ReduceOp::argmin || op == ReduceOp::argmax; }

/// Returns true if reading an element twice changes nothing.
bool is_idempotent(const ReduceSpec& spec) {
  if (spec.op == ReduceOp::product) return spec.dtype == DType::boolean;
  if (spec.op == ReduceOp::count_nonzero) return false;
  return info(spec.op).hazard == ReduceHazard::extremes || info(spec.op).hazard == ReduceHazard::truth;
}

TEST(ReduceReference, AcceptsARightReductionOfEveryKindOfInput) {
  for (ReduceSpec spec : all_specs())
    for (NanPolicy nan : {NanPolicy::propagate, NanPolicy::ignore})
      for (std::string_view kind : input_kinds(spec))
        for (std::int64_t n : {1, 2, 31, 33, 1000}) {
          spec.nan = nan;
          ASSERT_EQ(verdict_of(spec, n, kind), "") << describe(spec, n, kind);
        }
}

TEST(ReduceReference, AcceptsARightReductionInEveryAccumulatorToEveryResult) {
  for (const ReduceSpec& spec : all_conversions())
    for (std::string_view kind : input_kinds(spec))
      ASSERT_EQ(verdict_of(spec, 77, kind), "") << describe(spec, 77, kind);
}

TEST(ReduceReference, AcceptsARightReductionOfMoreThanOnePeriod) {
  const std::int64_t n = kInputPeriod + 1234;
  for (const ReduceSpec& spec : all_specs()) {
    if (spec.dtype != DType::f32) continue;
    const auto kinds = input_kinds(spec);
    for (std::string_view kind : {kinds[0], kinds[1]})
      EXPECT_EQ(verdict_of(spec, n, kind), "") << describe(spec, n, kind);
  }
}

TEST(ReduceReference, TheResultOfNoElementsIsTheIdentity) {
  for (ReduceSpec spec : all_specs()) {
    if (info(spec.op).needs_elements) continue;
    EXPECT_EQ(verdict_of(spec, 0, "uniform"), "") << describe(spec, 0, "nothing");
  }
}

TEST(ReduceReference, OneMissingElementIsSeen) {
  for (const ReduceSpec& spec : all_specs())
    for (std::int64_t n : {1, 2, 33, 1000}) {
      if (n == 1 && (is_index(spec.op) || one_is_as_good_as_none(spec))) continue;
      EXPECT_TRUE(is_caught(spec, n, {.missing = n - 1})) << describe(spec, n, "");
    }
}

TEST(ReduceReference, OneElementThatIsReadTwiceIsSeen) {
  for (const ReduceSpec& spec : all_specs()) {
    if (is_idempotent(spec)) continue;
    for (std::int64_t n : {2, 33, 1000}) EXPECT_TRUE(is_caught(spec, n, {.doubled = n - 1})) << describe(spec, n, "");
  }
}

TEST(ReduceReference, MissingElementsShowWhereverTheyAre) {
  for (const ReduceSpec& spec : all_specs()) {
    if (is_idempotent(spec)) continue;
    int caught = 0;
    for (std::int64_t i = 0; i < 16; ++i) caught += is_caught(spec, 500, {.missing = 31 * i}) ? 1 : 0;
    EXPECT_GE(caught, 12) << describe(spec, 500, "");
  }
}

TEST(ReduceReference, ASecondWholePeriodStillShowsOneElement) {
  const std::int64_t n = 2 * kInputPeriod + 17;
  for (ReduceOp op : {ReduceOp::sum, ReduceOp::dot, ReduceOp::sum_of_squares, ReduceOp::l1_norm, ReduceOp::mean,
                      ReduceOp::mean_variance, ReduceOp::logsumexp}) {
    const ReduceSpec spec{.op = op};
    EXPECT_NE(verdict_of(spec, n, "sparse", {.missing = kInputPeriod - 1}), "") << describe(spec, n, "sparse");
    EXPECT_NE(verdict_of(spec, n, "sparse", {.doubled = kInputPeriod}), "") << describe(spec, n, "sparse");
  }
}

TEST(ReduceReference, DisplacedIndicesAreSeen) {
  for (const ReduceSpec& spec : all_specs()) {
    if (!is_index(spec.op)) continue;
    EXPECT_TRUE(is_caught(spec, 1000, {.missing = 0})) << describe(spec, 1000, "");
    for (std::string_view kind : input_kinds(spec)) {
      const Patterns patterns = patterns_of(spec, 1000, kind);
      std::vector<std::byte> found = serial_reduce(spec, 1000, patterns);
      std::int64_t index = 0;
      std::memcpy(&index, found.data(), sizeof(index));
      for (std::int64_t wrong : {index - 1, index + 1, index + 32, std::int64_t{0}, std::int64_t{-1}}) {
        if (wrong == index) continue;
        std::memcpy(found.data(), &wrong, sizeof(wrong));
        EXPECT_NE(verify(spec, 1000, 64, patterns, found), "") << describe(spec, 1000, kind);
      }
    }
  }
}

TEST(ReduceReference, ALostNanIsSeenAndAnIgnoredOneMayNotShow) {
  for (ReduceSpec spec : all_specs()) {
    if (!info(spec.dtype).is_floating() || spec.op == ReduceOp::all) continue;
    const Patterns patterns = patterns_of(spec, 300, "nan");
    ReduceSpec other = spec;
    other.nan = NanPolicy::ignore;
    EXPECT_NE(verify(spec, 300, 64, patterns, serial_reduce(other, 300, patterns)), "") << describe(spec, 300, "nan");
    EXPECT_NE(verify(other, 300, 64, patterns, serial_reduce(spec, 300, patterns)), "") << describe(other, 300, "nan");
  }
}

TEST(ReduceReference, SaysWhatWasExpectedFoundAndAllowed) {
  using Floats = std::vector<float>;
  EXPECT_EQ(verdict({.op = ReduceOp::max}, Floats{1, 4}, Floats{3}), "expected 4, found 3, allowed nothing else");
  EXPECT_EQ(verdict({.op = ReduceOp::minmax}, Floats{1, 4}, Floats{1, 3}),
            "maximum: expected 4, found 3, allowed nothing else");
  EXPECT_THAT(verdict({.op = ReduceOp::mean_variance}, Floats{1, 4}, Floats{2.5f, 3}),
              StartsWith("variance: expected 2.25, found 3, allowed 2.2"));
}

TEST(ReduceReference, AWrongIdentityIsSeen) {
  using Floats = std::vector<float>;
  EXPECT_EQ(verdict({.op = ReduceOp::max}, Floats{-3, -2, -7}, Floats{-2}), "");
  EXPECT_NE(verdict({.op = ReduceOp::max}, Floats{-3, -2, -7}, Floats{0}), "");
  EXPECT_NE(verdict({.op = ReduceOp::max}, Floats{-3, -2}, Floats{std::numeric_limits<float>::min()}), "");
  EXPECT_NE(verdict({.op = ReduceOp::max}, Floats{}, Floats{std::numeric_limits<float>::lowest()}), "");
  EXPECT_EQ(verdict({.op = ReduceOp::max}, Floats{}, Floats{-kInfinity}), "");
  EXPECT_NE(verdict({.op = ReduceOp::product}, Floats{}, Floats{0}), "");
  EXPECT_EQ(verdict({.op = ReduceOp::logsumexp}, Floats{-kInfinity, -kInfinity}, Floats{-kInfinity}), "");
  EXPECT_NE(verdict({.op = ReduceOp::logsumexp}, Floats{-kInfinity, -kInfinity}, Floats{kNan}), "");
  EXPECT_EQ(verdict({.op = ReduceOp::min}, std::vector<std::int8_t>{}, std::vector<std::int8_t>{127}), "");
  EXPECT_EQ(verdict({.op = ReduceOp::all}, std::vector<bool>{}, std::vector<bool>{true}), "");
  EXPECT_NE(verdict({.op = ReduceOp::any}, std::vector<bool>{}, std::vector<bool>{true}), "");
}

TEST(ReduceReference, IntegersWrapModuloTwoToThe64) {
  using Longs = std::vector<std::int64_t>;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(verdict({.op = ReduceOp::sum}, Longs{kMost, 1}, Longs{kLeast}), "");
  EXPECT_EQ(verdict({.op = ReduceOp::sum}, Longs{kMost, 1}, Longs{0}, 2), "");
  EXPECT_EQ(verdict({.op = ReduceOp::product}, Longs{kMost, kMost}, Longs{1}), "");
  EXPECT_EQ(verdict({.op = ReduceOp::product}, Longs{3}, Longs{81 * 81}, 8), "");
  EXPECT_EQ(verdict({.op = ReduceOp::l1_norm}, Longs{kLeast, -1}, Longs{kLeast + 1}), "");
  EXPECT_EQ(verdict({.op = ReduceOp::sum_of_squares}, Longs{kMost, 2}, Longs{5}), "");
}

TEST(ReduceReference, NarrowIntegersDoNot) {
  using Ints = std::vector<std::int32_t>;
  using Longs = std::vector<std::int64_t>;
  EXPECT_EQ(verdict({.op = ReduceOp::sum}, Ints{2147483647, 1}, Longs{2147483648}), "");
  EXPECT_NE(verdict({.op = ReduceOp::sum}, Ints{2147483647, 1}, Longs{-2147483648}), "");
  EXPECT_EQ(verdict({.op = ReduceOp::max_norm}, Ints{std::numeric_limits<std::int32_t>::min()}, Longs{2147483648}), "");
  const ReduceSpec narrow{.op = ReduceOp::sum, .result = DType::i8};
  EXPECT_EQ(verdict(narrow, Ints{200, 100}, std::vector<std::int8_t>{44}), "");
}

TEST(ReduceReference, TheMaxNormOfTheSmallestIntegerIsItsMagnitude) {
  using Longs = std::vector<std::int64_t>;
  const Longs lowest{std::numeric_limits<std::int64_t>::min(), -7};
  EXPECT_EQ(verdict({.op = ReduceOp::max_norm}, lowest, std::vector{std::uint64_t{1} << 63}), "");
  EXPECT_NE(verdict({.op = ReduceOp::max_norm}, lowest, std::vector{std::uint64_t{7}}), "");
}

TEST(ReduceReference, AVarianceFromRoundedMeansIsRefused) {
  // Deviations that are taken from the nearest float to the mean, a million and a bit.
  std::vector<float> values;
  for (int i = 0; i < 1024; ++i) values.push_back(1e6f + 0.0625f * static_cast<float>(i % 32));
  double sum = 0, squares = 0, rounded = 0;
  for (const float x : values) sum += x;
  const float nearest = static_cast<float>(sum / 1024) + 0.0625f;
  for (const float x : values) {
    squares += (x - sum / 1024) * (x - sum / 1024);
    rounded += double(x - nearest) * double(x - nearest);
  }
  const ReduceSpec spec{.op = ReduceOp::mean_variance};
  const auto mean = static_cast<float>(sum / 1024);
  EXPECT_EQ(verdict(spec, values, std::vector{mean, static_cast<float>(squares / 1024)}), "");
  EXPECT_NE(verdict(spec, values, std::vector{mean, static_cast<float>(rounded / 1024)}), "");
}

TEST(ReduceReference, RepeatsToTwoToThe33Elements) {
  const std::int64_t n = (std::int64_t{1} << 33) + 1;
  const ReduceSpec sum{.op = ReduceOp::sum, .dtype = DType::i32};
  const Patterns patterns{bytes_of(std::vector<std::int32_t>{1, 2, 3})};
  const std::int64_t exact = n / 3 * 6 + (n % 3 == 1 ? 1 : n % 3 == 2 ? 3 : 0);
  EXPECT_EQ(verify(sum, n, 64, patterns, bytes_of(std::vector{exact})), "");
  EXPECT_NE(verify(sum, n, 64, patterns, bytes_of(std::vector{exact - 1})), "");

  const ReduceSpec count{.op = ReduceOp::count_nonzero, .dtype = DType::i32};
  EXPECT_EQ(verify(count, n, 64, patterns, bytes_of(std::vector{n})), "");
  EXPECT_NE(verify(count, n, 64, patterns, bytes_of(std::vector{n - 1})), "");

  // Sparse small integers sum exactly in a float even so.
  const ReduceSpec squares{.op = ReduceOp::sum_of_squares};
  const Patterns sparse = patterns_of(squares, n, "sparse");
  const std::string fault = verify(squares, n, 64, sparse, bytes_of(std::vector{-1.0f}));
  EXPECT_THAT(fault, testing::EndsWith("allowed nothing else"));
}

TEST(ReduceReference, ProductsStayInRangeHoweverManyThereAre) {
  for (DType dtype : {DType::f16, DType::bf16, DType::f32, DType::i8})
    for (std::int64_t n : {std::int64_t{1} << 20, std::int64_t{1} << 33}) {
      const ReduceSpec spec{.op = ReduceOp::product, .dtype = dtype, .accumulator = DType::f64};
      for (std::string_view kind : {"uniform", "powers_of_two"}) {
        const auto kinds = input_kinds(spec);
        if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) continue;
        const Patterns patterns = patterns_of(spec, n, kind);
        const std::size_t bytes = info(spec.result_dtype()).size_bytes;
        for (std::byte wrong : {std::byte{0x00}, std::byte{0x7f}}) {  // zero, and NaN or something huge
          const std::vector<std::byte> found(bytes, wrong);
          EXPECT_NE(verify(spec, n, 64, patterns, found), "") << describe(spec, n, kind);
        }
      }
    }
}

TEST(ReduceReference, NoOrderOfMultiplyingLeavesTheRangeOfAFloat) {
  for (std::int64_t n : {std::int64_t{1} << 12, std::int64_t{1} << 26, std::int64_t{1} << 33})
    for (std::string_view kind : {"uniform", "powers_of_two"}) {
      const ReduceSpec spec{.op = ReduceOp::product};
      const Patterns patterns = patterns_of(spec, n, kind);
      std::vector<float> values(patterns[0].size() / sizeof(float));
      std::memcpy(values.data(), patterns[0].data(), patterns[0].size());
      double up = 0;
      double down = 0;
      for (float x : values) (std::fabs(x) > 1 ? up : down) += std::log(std::fabs(x));
      const double repetitions = static_cast<double>(n) / static_cast<double>(values.size());
      EXPECT_LT(up * repetitions, std::log(std::numeric_limits<float>::max())) << n << " " << kind;
      EXPECT_GT(down * repetitions, std::log(std::numeric_limits<float>::min())) << n << " " << kind;
      if (kind == "uniform") {
        EXPECT_GT(up, 0) << "something differs from one";
      }
    }
}

TEST(ReduceReference, AVarianceFromTheSumOfSquaresIsRefused) {
  for (DType dtype : {DType::f32, DType::f64}) {
    const ReduceSpec spec{.op = ReduceOp::mean_variance, .dtype = dtype};
    const Patterns patterns = patterns_of(spec, 10000, "offset");
    with_element_type(dtype, [&]<class T>(T) {
      if constexpr (std::is_floating_point_v<T>) {
        T sum = 0;
        T squares = 0;
        for (std::size_t i = 0; i < 10000; ++i) {
          T x;
          std::memcpy(&x, patterns[0].data() + i * sizeof(T), sizeof(T));
          sum += x;
          squares += x * x;
        }
        const T mean = sum / 10000;
        EXPECT_NE(verify(spec, 10000, 64, patterns, bytes_of(std::vector<T>{mean, squares / 10000 - mean * mean})), "");
      }
    });
  }
}

TEST(ReduceReference, InfinitiesFollowIeeeArithmetic) {
  const ReduceSpec sum{};
  const Patterns one = patterns_of(sum, 500, "infinity");
  EXPECT_EQ(verify(sum, 500, 64, one, bytes_of(std::vector{kInfinity})), "");
  EXPECT_NE(verify(sum, 500, 64, one, bytes_of(std::vector{-kInfinity})), "");
  EXPECT_NE(verify(sum, 500, 64, one, bytes_of(std::vector{std::numeric_limits<float>::max()})), "");
  const Patterns both = patterns_of(sum, 500, "both_infinities");
  EXPECT_EQ(verify(sum, 500, 64, both, bytes_of(std::vector{kNan})), "");
  EXPECT_NE(verify(sum, 500, 64, both, bytes_of(std::vector{0.0f})), "");
}

TEST(ReduceReference, ResultsOf16BitsAreRoundedToNearest) {
  const ReduceSpec sum{.op = ReduceOp::sum, .result = DType::f16};
  const std::vector<float> third{1.0f / 3};
  EXPECT_EQ(verdict(sum, third, std::vector{half(1.0f / 3)}), "");
  half above(1.0f / 3);
  ++above.bits;
  EXPECT_NE(verdict(sum, third, std::vector{above}), "");
  EXPECT_EQ(verdict(sum, std::vector<float>{65000, 1000}, std::vector{half(kInfinity)}), "");
  EXPECT_NE(verdict(sum, std::vector<float>{65000, 1000}, std::vector{half(65504)}), "");
  EXPECT_EQ(verdict(sum, std::vector<float>{0x1p-24f}, std::vector{half(0x1p-24f)}), "");
  EXPECT_NE(verdict(sum, std::vector<float>{0x1p-24f}, std::vector{half(0)}), "");
  const std::vector<double> above_middle{1 + 0x1p-11 + 0x1p-40};  // the nearest float is the middle
  EXPECT_EQ(verdict(sum, above_middle, std::vector{half(1 + 0x1p-10f)}), "");
  EXPECT_NE(verdict(sum, above_middle, std::vector{half(1)}), "");
}

TEST(ReduceReference, PatternsAreTheSameEveryTimeAndNeverLongerThanAPeriod) {
  for (const ReduceSpec& spec : all_specs())
    for (std::string_view kind : input_kinds(spec)) {
      EXPECT_EQ(patterns_of(spec, 5000, kind), patterns_of(spec, 5000, kind)) << describe(spec, 5000, kind);
      EXPECT_EQ(input_pattern(spec, 0, 10, kind).size(), 10 * info(spec.dtype).size_bytes);
    }
  const auto period = static_cast<std::size_t>(kInputPeriod);
  EXPECT_EQ(input_pattern({.dtype = DType::i8}, 0, std::int64_t{1} << 33, "uniform").size(), period);
}

TEST(ReduceReference, TheFirstKindIsTheOneToMeasure) {
  for (const ReduceSpec& spec : all_specs()) {
    const auto kinds = input_kinds(spec);
    EXPECT_EQ(kinds.front(), spec.dtype == DType::boolean ? "mixed" : "uniform") << describe(spec, 0, "");
    EXPECT_EQ(std::set<std::string_view>(kinds.begin(), kinds.end()).size(), kinds.size());
  }
}

}  // namespace
}  // namespace hone::reduce_reference
