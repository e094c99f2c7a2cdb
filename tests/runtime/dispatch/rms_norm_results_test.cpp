// tuned_rms_norm() on a real device next to a plain loop in double.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <hone/rms_norm.h>

#include "tests/runtime/support/device_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

class RmsNormResults : public DeviceTest {
 protected:
  template <class T>
  static double value_of(T element) {
    return static_cast<float>(element);
  }

  template <class T>
  static T element_of(double value) {
    return static_cast<T>(static_cast<float>(value));
  }

  /// The largest relative error of a rounded result: half a unit in the last place, and what f32 adds.
  template <class T>
  static double tolerance() {
    return kDTypeOf<T> == DType::f16 ? 0x1.1p-11 : kDTypeOf<T> == DType::bf16 ? 0x1.1p-8 : 0x1p-20;
  }

  struct Call {
    std::int64_t rows = 1, columns = 1;
    bool has_weight = true, has_residual = false, in_place = false;
    std::int64_t in_gap = 0, out_gap = 0;  ///< elements between rows
    std::size_t offset = 0;                ///< elements behind an aligned address
    double eps = 1e-5;
  };

  /// Random elements and gaps: `rows` rows, and some elements behind the last.
  template <class T>
  static std::vector<T> random_array(std::int64_t rows, std::int64_t pitch, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> any(-3, 3);
    std::vector<T> values(static_cast<std::size_t>(rows * pitch + 8));
    for (T& value : values) value = element_of<T>(any(random));
    return values;
  }

  template <class T>
  std::vector<T> fetch_all(const T* from, std::size_t count) const {
    std::vector<T> values(count);
    device_->copy_to_host(values.data(), from, count * sizeof(T), nullptr);
    device_->synchronize(nullptr);
    return values;
  }

  /// Makes the call and compares every element, gaps included, which must be as they were.
  template <class T>
  void expect_right(Session& session, const Call& call) {
    const std::int64_t in_pitch = call.columns + call.in_gap, out_pitch = call.columns + call.out_gap;
    const std::vector<T> x = random_array<T>(call.rows, in_pitch, 1);
    const std::vector<T> residual = random_array<T>(call.rows, in_pitch, 2);
    const std::vector<T> weight = random_array<T>(1, call.columns, 3);
    const std::vector<T> before = random_array<T>(call.rows, out_pitch, 4);
    const Array<T> x_array = upload(x, call.offset), residual_array = upload(residual, call.offset);
    const Array<T> weight_array = upload(weight, call.offset);
    const Array<T> y_array = upload(before, call.offset), sum_array = upload(before, call.offset);
    T* const y = call.in_place ? x_array.data : y_array.data;
    T* const sum = call.in_place ? residual_array.data : sum_array.data;
    tuned_rms_norm(session,
                   {.dtype = kDTypeOf<T>,
                    .rows = call.rows,
                    .columns = call.columns,
                    .eps = call.eps,
                    .in_pitch = in_pitch,
                    .out_pitch = out_pitch},
                   {.in = x_array.data,
                    .residual = call.has_residual ? residual_array.data : nullptr,
                    .weight = call.has_weight ? weight_array.data : nullptr,
                    .out = y,
                    .sum = call.has_residual ? sum : nullptr},
                   nullptr);

    const std::vector<T> results = fetch_all(y, before.size()), sums = fetch_all(sum, before.size());
    const std::string what = to_string(rms_norm_problem(
        {.dtype = kDTypeOf<T>, .rows = call.rows, .columns = call.columns}, call.has_weight, call.has_residual));
    for (std::int64_t row = 0; row < call.rows; ++row) {
      std::vector<double> h;
      double squares = 0;
      for (std::int64_t column = 0; column < call.columns; ++column) {
        const auto i = static_cast<std::size_t>(row * in_pitch + column);
        h.push_back(value_of(x[i]));
        if (call.has_residual) h.back() = value_of(element_of<T>(h.back() + value_of(residual[i])));
        squares += h.back() * h.back();
      }
      const double scale = std::sqrt(squares / static_cast<double>(call.columns) + call.eps);
      for (std::int64_t column = 0; column < out_pitch; ++column) {
        const auto i = static_cast<std::size_t>(row * out_pitch + column), c = static_cast<std::size_t>(column);
        if (column >= call.columns) {
          const T kept = call.in_place ? x[i] : before[i];
          ASSERT_EQ(value_of(results[i]), value_of(kept)) << what << ": gap " << column << " of row " << row;
          continue;
        }
        const double expected = h[c] / scale * (call.has_weight ? value_of(weight[c]) : 1);
        ASSERT_NEAR(value_of(results[i]), expected, std::abs(expected) * tolerance<T>() + 1e-7)
            << what << ": column " << column << " of row " << row;
        if (!call.has_residual) continue;
        ASSERT_EQ(value_of(sums[i]), h[c]) << what << ": sum " << column << " of row " << row;
      }
    }
  }

  /// The results of one row of floats, without weights.
  std::vector<float> row_of(Session& session, const std::vector<float>& row, double eps = 1e-6) {
    const Array<float> in = upload(row), out = upload(row);
    tuned_rms_norm(session,
                   {.dtype = DType::f32, .rows = 1, .columns = static_cast<std::int64_t>(row.size()), .eps = eps},
                   {.in = in.data, .out = out.data}, nullptr);
    return fetch_all(out.data, row.size());
  }
};

TEST_F(RmsNormResults, AreRightForRowsOfAnyLength) {
  Session session(device_, quick());
  for (const std::int64_t columns : {1, 2, 7, 31, 32, 33, 255, 256, 257, 1000, 1024, 4097, 20000})
    for (const std::int64_t rows : {1, 5})
      expect_right<float>(session, {.rows = rows, .columns = columns, .has_weight = columns % 2 == 1});
  expect_right<half>(session, {.rows = 1000, .columns = 64});
  expect_right<bfloat16>(session, {.rows = 3, .columns = 70000});
}

TEST_F(RmsNormResults, AreRightWithAndWithoutWeightsAndResiduals) {
  Session session(device_, quick());
  for (const bool has_weight : {false, true})
    for (const bool has_residual : {false, true})
      for (const bool in_place : {false, true}) {
        const Call call{.rows = 6, .columns = 96, .has_weight = has_weight, .has_residual = has_residual,
                        .in_place = in_place};
        expect_right<half>(session, call);
        expect_right<bfloat16>(session, call);
        expect_right<float>(session, call);
      }
}

TEST_F(RmsNormResults, RowsMayBeginAnywhereAndHavePitches) {
  Session session(device_, quick());
  for (const std::size_t offset : {0, 1, 4})
    for (const std::int64_t gap : {0, 1, 8}) {
      expect_right<half>(session, {.rows = 5, .columns = 72, .has_residual = true, .in_gap = gap, .offset = offset});
      expect_right<half>(session, {.rows = 5, .columns = 71, .in_gap = gap, .out_gap = 3, .offset = offset});
      expect_right<float>(session, {.rows = 4, .columns = 300, .has_residual = true, .in_place = true, .in_gap = gap,
                                    .out_gap = gap, .offset = offset});
    }
}

TEST_F(RmsNormResults, EpsIsAnArgumentAndNoProblemOfItsOwn) {
  Session session(device_, quick());
  for (const double eps : {1e-6, 0.0, 1e-12, 0.25, 1e30})
    expect_right<float>(session, {.rows = 2, .columns = 64, .eps = eps});
  EXPECT_EQ(session.counters().compiles, 1u);
}

TEST_F(RmsNormResults, AreTheFormulasInFloat) {
  Session session(device_, quick());
  const auto everything = [](const std::vector<float>& results, auto&& holds) {
    return std::all_of(results.begin(), results.end(), holds);
  };
  const auto is_nan = [](float result) { return std::isnan(result); };
  const auto is_zero = [](float result) { return result == 0; };
  std::vector<float> row(100, 2);
  row[70] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(everything(row_of(session, row), is_nan));
  row[70] = -std::numeric_limits<float>::infinity();
  const std::vector<float> with_infinity = row_of(session, row);
  EXPECT_TRUE(std::isnan(with_infinity[70]));
  EXPECT_EQ(std::count_if(with_infinity.begin(), with_infinity.end(), is_zero), 99);
  EXPECT_TRUE(everything(row_of(session, std::vector<float>(100, 1e30f)), is_zero)) << "squares overflow";
  EXPECT_TRUE(everything(row_of(session, std::vector<float>(100, 0.0f)), is_zero));
  EXPECT_TRUE(everything(row_of(session, std::vector<float>(100, 0.0f), 0), is_nan)) << "0 ÷ 0";
  const auto is_one = [](float result) { return std::abs(result - 1) < 1e-6; };
  EXPECT_TRUE(everything(row_of(session, std::vector<float>(100, 1e18f)), is_one));
  EXPECT_TRUE(everything(row_of(session, std::vector<float>(100, 1e-41f)), [](float x) {
    return std::abs(x - 1e-38f) < 1e-42f;  // its square is 0: 1e-41 ÷ √1e-6
  }));
}

TEST_F(RmsNormResults, EmptyArraysAreLeftAlone) {
  Session session(device_, quick());
  EXPECT_EQ(tuned_rms_norm(session, {.rows = 0, .columns = 5}, {}, nullptr).winner, nullptr);
  EXPECT_EQ(tuned_rms_norm(session, {.rows = 5, .columns = 0}, {}, nullptr).winner, nullptr);
}

TEST_F(RmsNormResults, BadCallsAreRefusedByName) {
  Session session(device_, quick());
  const DeviceBuffer memory(device_, 4096);
  float* const in = memory.as<float>();
  const auto message = [&](RmsNormSpec spec, const RmsNormArrays& arrays) -> std::string {
    try {
      tuned_rms_norm(session, spec, arrays, nullptr);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "";
  };
  const RmsNormSpec spec{.dtype = DType::f32, .rows = 4, .columns = 8};
  EXPECT_THAT(message(spec, {.out = in}), Names("tuned_rms_norm", "plain", "f32", "4×8", "'in'", "null"));
  EXPECT_THAT(message(spec, {.in = in}), Names("'out'", "null"));
  EXPECT_THAT(message(spec, {.in = in, .residual = in + 64, .out = in + 128}), Names("'sum'", "null"));
  EXPECT_THAT(message(spec, {.in = in, .out = in + 128, .sum = in + 64}), Names("'residual'", "null"));
  EXPECT_THAT(message(spec, {.in = in, .weight = reinterpret_cast<std::byte*>(in) + 258, .out = in + 128}),
              Names("'weight'"));
  EXPECT_THAT(message(spec, {.in = in, .out = in + 1}), Names("overlap"));
  EXPECT_THAT(message(spec, {.in = in, .weight = in + 30, .out = in + 32}), Names("'weight'"));
  EXPECT_THAT(message(spec, {.in = in, .residual = in + 64, .out = in + 64, .sum = in + 128}), Names("overlap"));
  EXPECT_THAT(message(spec, {.in = in, .residual = in + 64, .out = in + 128, .sum = in + 150}), Names("'sum'"));
  RmsNormSpec halves = spec;
  halves.in_pitch = halves.out_pitch = 16;
  EXPECT_EQ(message(halves, {.in = in, .out = in + 8}), "") << "the other half of each row";
  EXPECT_EQ(message(halves, {.in = in, .out = in}), "");
  halves.out_pitch = 24;
  EXPECT_THAT(message(halves, {.in = in, .out = in}), Names("overlap"));
  halves.out_pitch = 7;
  EXPECT_THAT(message(halves, {.in = in, .out = in}), Names("pitch", "7"));
  const auto changed = [&](auto&& change) {
    RmsNormSpec other = spec;
    change(other);
    return message(other, {.in = in, .out = in});
  };
  EXPECT_THAT(changed([](RmsNormSpec& other) { other.rows = -1; }), Names("extent", "-1"));
  EXPECT_THAT(changed([](RmsNormSpec& other) { other.rows = std::int64_t{1} << 60; }), Names("no memory"));
  EXPECT_THAT(changed([](RmsNormSpec& other) { other.dtype = DType::f64; }), Names("not f64"));
  EXPECT_THAT(changed([](RmsNormSpec& other) { other.dtype = static_cast<DType>(77); }), Names("no dtype", "77"));
  EXPECT_THAT(changed([](RmsNormSpec& other) { other.eps = -1e-6; }), Names("eps=-1e-06", "eps is -1e-06"));
  EXPECT_THAT(changed([](RmsNormSpec& other) { other.eps = std::nan(""); }), Names("eps"));
}

/// The reference that winners are verified against notices what is off by more than rounding.
TEST(RmsNormVerifier, NoticesOneWrongElement) {
  const Problem problem = rms_norm_problem({.dtype = DType::f32, .rows = 2, .columns = 8}, false, true);
  const std::vector<float> ones(16, 1.0f), twos(16, 2.0f), x(16, 1.0f / std::sqrt(1 + 1e-6f / 4));
  const auto bytes = [](const std::vector<float>& values) {
    const auto all = std::as_bytes(std::span(values));
    return std::vector<std::byte>(all.begin(), all.end());
  };
  const Candidate candidate{problem.family->space().all().front(), {1}};
  const std::vector<std::vector<std::byte>> inputs{bytes(ones), bytes(ones)};
  const auto verdict = [&](const std::vector<float>& y, const std::vector<float>& sum) {
    const std::vector<std::vector<std::byte>> outputs{bytes(y), bytes(sum)};
    return problem.family->verifier().verify(problem, candidate, inputs, outputs);
  };
  EXPECT_EQ(verdict(x, twos), "");
  std::vector<float> wrong = x;
  wrong[11] *= 1 + 0x1p-17f;
  EXPECT_THAT(verdict(wrong, twos), Names("column 3", "row 1"));
  wrong = twos;
  wrong[11] = 2.0000002f;
  EXPECT_THAT(verdict(x, wrong), Names("sum", "column 3", "row 1"));
}

}  // namespace
}  // namespace hone
