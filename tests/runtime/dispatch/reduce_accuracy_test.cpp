// How exact results are where elements lie far from zero, at the ends of their dtype, or between two 16-bit floats.
#include <cmath>
#include <numeric>

#include "tests/runtime/support/device_fixture.h"

#include <hone/fused_reduce.h>
#include <hone/reduce_axis.h>
#include <hone/segmented_reduce.h>

namespace hone {
namespace {

template <class T>
struct MeanAndVariance {
  T mean, variance;
};

/// Computes the moments of every stride-th value, NaNs left out. The mean is a pivot and what the pivot's own sum has
/// rounded: together they have more digits than a long double.
template <class T>
MeanAndVariance<long double> moments_of(std::span<const T> values, std::size_t stride = 1) {
  const auto mean_of = [&](const auto& term) {
    long double sum = 0, count = 0;
    for (std::size_t i = 0; i < values.size(); i += stride) {
      if (std::isnan(values[i])) continue;
      sum += term(static_cast<long double>(values[i]));
      ++count;
    }
    return sum / count;
  };
  const long double pivot = mean_of([](long double x) { return x; });
  const long double offset = mean_of([&](long double x) { return x - pivot; });
  return {pivot + offset, mean_of([&](long double x) { return (x - pivot - offset) * (x - pivot - offset); })};
}

/// An element's spacing is 1/16 at a million in f32 and 1/8 at 10^15 in f64.
template <class T>
constexpr T kFar = sizeof(T) == 4 ? T(1e6) : T(1e15);
template <class T>
constexpr double kTolerance = sizeof(T) == 4 ? 2e-5 : 1e-12;

template <class T>
std::vector<T> far_values(std::size_t n) {
  std::vector<T> values = random_values<T>(n);
  for (T& value : values) value += kFar<T>;
  return values;
}

class ReduceAccuracy : public DeviceTest {
 protected:
  template <class T>
  static void expect_near(const MeanAndVariance<T>& found, const MeanAndVariance<long double>& expected,
                          std::string_view what) {
    const auto unit = static_cast<double>(std::numeric_limits<T>::epsilon() / 2);
    EXPECT_NEAR(static_cast<double>(static_cast<long double>(found.mean) - expected.mean), 0,
                2 * unit * static_cast<double>(std::fabs(expected.mean)) + 1e3 * unit)
        << what;
    EXPECT_NEAR(static_cast<double>(found.variance), static_cast<double>(expected.variance),
                kTolerance<T> * static_cast<double>(expected.variance))
        << what;
  }

  template <class T>
  MeanAndVariance<T> moments(const std::vector<T>& values, NanPolicy nan = NanPolicy::propagate) {
    const auto in = upload(values, 1);
    const DeviceBuffer out(device_, 2 * sizeof(T));
    tuned_reduce(session_(), mean_variance, in.data, static_cast<std::int64_t>(values.size()), out.as<T>(), nullptr,
                 nan);
    return fetch(out.as<MeanAndVariance<T>>());
  }

  /// Returns `count` outputs that `reduce` fills.
  template <class T, class Reduce>
  std::vector<MeanAndVariance<T>> filled(std::size_t count, const Reduce& reduce) {
    const auto out = upload(std::vector<MeanAndVariance<T>>(count));
    reduce(session_(), &out.data->mean);
    std::vector<MeanAndVariance<T>> found(count);
    device_->copy_to_host(found.data(), out.data, count * sizeof(found[0]), nullptr);
    device_->synchronize(nullptr);
    return found;
  }

  Session& session_() {
    if (!opened_) opened_ = std::make_unique<Session>(device_, quick());
    return *opened_;
  }

  std::unique_ptr<Session> opened_;
};

template <class T>
class VariancesFarFromZero : public ReduceAccuracy {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(VariancesFarFromZero, Floats);

TYPED_TEST(VariancesFarFromZero, OfArraysKeepTheirDigits) {
  using T = TypeParam;
  for (std::size_t n : {std::size_t{2}, std::size_t{77}, std::size_t{4099}, (std::size_t{1} << 20) + 7}) {
    const std::vector<T> values = far_values<T>(n);
    this->expect_near(this->moments(values), moments_of<T>(values), std::to_string(n));
  }
}

TYPED_TEST(VariancesFarFromZero, OfRowsKeepTheirDigits) {
  using T = TypeParam;
  for (const std::size_t columns : {std::size_t{5}, std::size_t{131}, std::size_t{30011}}) {
    constexpr std::size_t kRows = 9;
    const std::vector<T> values = far_values<T>(kRows * columns);
    const auto in = this->upload(values);
    const auto found = this->template filled<T>(kRows, [&](Session& session, T* out) {
      tuned_reduce_rows(session, mean_variance, in.data,
                        {.rows = kRows, .columns = static_cast<std::int64_t>(columns)}, out, nullptr);
    });
    for (std::size_t row = 0; row < kRows; ++row)
      this->expect_near(found[row], moments_of<T>(std::span(values).subspan(row * columns, columns)), "row");
  }
}

TYPED_TEST(VariancesFarFromZero, OfColumnsKeepTheirDigits) {
  using T = TypeParam;
  for (const std::size_t columns : {std::size_t{3}, std::size_t{37}, std::size_t{64}}) {
    constexpr std::size_t kRows = 4001;
    const std::vector<T> values = far_values<T>(kRows * columns);
    const auto in = this->upload(values);
    const auto found = this->template filled<T>(columns, [&](Session& session, T* out) {
      tuned_reduce_columns(session, mean_variance, in.data,
                           {.reduced = kRows, .inner = static_cast<std::int64_t>(columns)}, out, nullptr);
    });
    for (std::size_t column = 0; column < columns; ++column)
      this->expect_near(found[column], moments_of<T>(std::span(values).subspan(column), columns), "column");
  }
}

TYPED_TEST(VariancesFarFromZero, OfSegmentsKeepTheirDigitsAndEmptyOnesHaveNone) {
  using T = TypeParam;
  const std::vector<std::int32_t> offsets{0, 0, 3, 3, 1003, 1004, 40004, 40004, 40011};
  const std::vector<T> values = far_values<T>(static_cast<std::size_t>(offsets.back()));
  const auto in = this->upload(values);
  const auto at = this->upload(offsets);
  const std::size_t segments = offsets.size() - 1;
  const auto found = this->template filled<T>(segments, [&](Session& session, T* out) {
    tuned_reduce_segments(session, mean_variance, in.data, offsets.back(), at.data,
                          static_cast<std::int64_t>(segments), out, nullptr);
  });
  for (std::size_t s = 0; s < segments; ++s) {
    const auto first = static_cast<std::size_t>(offsets[s]), last = static_cast<std::size_t>(offsets[s + 1]);
    if (first == last) {
      EXPECT_TRUE(std::isnan(found[s].mean) && std::isnan(found[s].variance)) << s;
    } else {
      this->expect_near(found[s], moments_of<T>(std::span(values).subspan(first, last - first)), "segment");
    }
  }
}

TYPED_TEST(VariancesFarFromZero, KeepTheirDigitsInFusedReductions) {
  using T = TypeParam;
  const std::vector<T> values = far_values<T>(300007);
  const auto in = this->upload(values);
  const auto found = this->template filled<T>(2, [&](Session& session, T* out) {
    tuned_reduce(session, fuse(mean_variance, hone::max), in.data, static_cast<std::int64_t>(values.size()),
                 std::tuple(out, out + 2), nullptr);
  });
  this->expect_near(found[0], moments_of<T>(values), "fused");
  EXPECT_EQ(found[1].mean, *std::max_element(values.begin(), values.end()));
}

TYPED_TEST(VariancesFarFromZero, KeepTheirDigitsBehindNansThatAreIgnored) {
  using T = TypeParam;
  std::vector<T> values = far_values<T>(50021);
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = std::numeric_limits<T>::quiet_NaN();
  std::fill_n(values.begin(), 5000, std::numeric_limits<T>::quiet_NaN());
  this->expect_near(this->moments(values, NanPolicy::ignore), moments_of<T>(values), "NaNs");
  EXPECT_TRUE(std::isnan(this->moments(values).mean));
  EXPECT_TRUE(std::isnan(this->moments(values).variance));
}

TYPED_TEST(VariancesFarFromZero, KeepTheirDigitsBehindAFirstElementThatIsFarFromTheOthers) {
  using T = TypeParam;
  std::vector<T> values = random_values<T>((std::size_t{1} << 20) + 3);
  values.front() = kFar<T> / 1000;
  const auto found = this->moments(values);
  const auto expected = moments_of<T>(values);
  const auto unit = std::numeric_limits<T>::epsilon() / 2;
  EXPECT_NEAR(found.mean, static_cast<double>(expected.mean), kChain * unit * kFar<T> / 1000);
  EXPECT_NEAR(found.variance / static_cast<double>(expected.variance), 1, kTolerance<T>);
}

TYPED_TEST(VariancesFarFromZero, AreZeroWhereAllElementsAreEqual) {
  using T = TypeParam;
  for (const T value : {T(5592405.5), T(-0.1), T(1e25)})
    for (const std::size_t n : {3, 1000, 1000003}) {
      const auto found = this->moments(std::vector<T>(n, value));
      EXPECT_EQ(found.variance, 0) << value << " " << n;
      EXPECT_EQ(found.mean, value) << n;
    }
}

TEST_F(ReduceAccuracy, MeansOfHugeAndInfiniteElementsAreThoseOfTheirSum) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(moments(std::vector<float>{3e38f, -3e38f}).mean, 0);
  EXPECT_EQ(moments(std::vector<float>{3e38f, -3e38f}).variance, kInfinity);
  EXPECT_EQ(moments(std::vector<float>{kInfinity}).mean, kInfinity);
  EXPECT_TRUE(std::isnan(moments(std::vector<float>{kInfinity}).variance));
  std::vector<float> late(5000, 1);
  late.back() = -kInfinity;
  EXPECT_EQ(moments(late).mean, -kInfinity);
  EXPECT_TRUE(std::isnan(moments(late).variance));
  late.front() = kInfinity;
  EXPECT_TRUE(std::isnan(moments(late).mean));
}

TEST_F(ReduceAccuracy, MeansOfSmallIntegersAreRoundedOnce) {
  std::vector<float> values(30000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3 + (i % 1000 == 0 ? 1 : 0);
  const double total = std::accumulate(values.begin(), values.end(), 0.0);
  EXPECT_EQ(moments(values).mean, static_cast<float>(total / 30000));
}

TEST_F(ReduceAccuracy, ResultsOf16BitsAreRoundedOnce) {
  const auto one = [&](auto value, auto result) {
    using Result = decltype(result);
    const auto in = upload(std::vector{value});
    const DeviceBuffer out(device_, sizeof(Result));
    tuned_reduce(session_(), sum, in.data, 1, out.as<Result>(), nullptr);
    return static_cast<float>(fetch(out.as<Result>()));
  };
  // Just above the middle between two of them, where the nearest float is the middle itself.
  EXPECT_EQ(one(1 + 0x1p-11 + 0x1p-40, half()), 1 + 0x1p-10f);
  EXPECT_EQ(one(-1 - 0x1p-11 - 0x1p-40, half()), -1 - 0x1p-10f);
  EXPECT_EQ(one(1 + 0x1p-8 + 0x1p-40, bfloat16()), 1 + 0x1p-7f);
  EXPECT_EQ(one((std::int64_t{1} << 40) + (std::int64_t{1} << 32) + 1, bfloat16()), 0x1p40f + 0x1p33f);
  EXPECT_EQ(one((std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1, bfloat16()), 0x1p62f + 0x1p55f);
  EXPECT_EQ(one((std::uint64_t{1} << 63) + (std::uint64_t{1} << 55) + 1, bfloat16()), 0x1p63f + 0x1p56f);
  // Just below one, and at one: ties to even.
  EXPECT_EQ(one(1 + 0x1p-10 + 0x1p-11 - 0x1p-40, half()), 1 + 0x1p-10f);
  EXPECT_EQ(one(1 + 0x1p-11, half()), 1);
  EXPECT_EQ(one(0x1p-25 + 0x1p-60, half()), 0x1p-24f);
  EXPECT_EQ(one(1e300, half()), std::numeric_limits<float>::infinity());
}

TEST_F(ReduceAccuracy, TheMaxNormOfTheSmallestIntegerIsItsMagnitude) {
  const std::uint64_t expected = std::uint64_t{1} << 63;
  for (const std::size_t n : {1, 1000, 30001}) {
    const auto in = upload(std::vector<std::int64_t>(n, std::numeric_limits<std::int64_t>::min()));
    const DeviceBuffer out(device_, sizeof(expected));
    const ReduceSpec spec{.op = ReduceOp::max_norm, .dtype = DType::i64};
    tuned_reduce(session_(), spec, in.data, static_cast<std::int64_t>(n), out.data(), nullptr);
    EXPECT_EQ(fetch(out.as<std::uint64_t>()), expected) << n;
    EXPECT_EQ(spec.result_dtype(), DType::u64);
  }
}

}  // namespace
}  // namespace hone
