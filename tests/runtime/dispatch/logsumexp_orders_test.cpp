// logsumexp of values in awkward orders, on a real device, against the families' reference.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include <hone/reduce_axis.h>

#include "runtime/families/expectation.h"
#include "runtime/families/reduce/reduce_reference.h"
#include "tests/runtime/support/device_fixture.h"

namespace hone {
namespace {

/// logsumexp of awkward orders, of an array, of rows and of columns.
template <class T>
class LogsumexpOrders : public DeviceTest {
 protected:
  /// Long enough that a thread takes several tiles, and no multiple of any.
  static constexpr std::int64_t kLength = 20001;

  static T of(double value) {
    if constexpr (sizeof(T) == 2) return T(static_cast<float>(value));
    else return static_cast<T>(value);
  }

  /// `value(i)` is element i of an array. Every other row and column is that array; those between are alike throughout,
  /// since what happens to one must not depend on its neighbours.
  void expect_right(Session& session, const std::function<double(std::int64_t)>& value,
                    NanPolicy nan = NanPolicy::propagate) const {
    using Result = std::conditional_t<sizeof(T) == 8, double, float>;
    std::array<std::vector<T>, 2> arrays{std::vector<T>(kLength, of(1)), std::vector<T>(kLength)};
    for (std::int64_t i = 0; i < kLength; ++i) arrays[1][static_cast<std::size_t>(i)] = of(value(i));
    const ReduceSpec spec{.op = ReduceOp::logsumexp, .dtype = kDTypeOf<T>, .nan = nan};
    const DeviceBuffer out(device_, kArrays * sizeof(Result));
    const auto check = [&](const char* what, std::size_t first, std::size_t last) {
      for (std::size_t r = first; r < last; ++r) {
        const Result found = fetch(out.as<Result>() + (r - first));
        const auto expected = std::as_bytes(std::span(arrays[r % 2]));
        EXPECT_EQ(reduce_reference::verify(spec, kLength, kChain, {{{expected.begin(), expected.end()}}},
                                           std::as_bytes(std::span(&found, 1))),
                  "")
            << what << " " << r;
      }
    };
    std::vector<T> rows;
    std::vector<T> columns;
    for (std::size_t r = 0; r < kArrays; ++r) rows.insert(rows.end(), arrays[r % 2].begin(), arrays[r % 2].end());
    for (std::size_t i = 0; i < kLength; ++i)
      for (std::size_t c = 0; c < kPitch; ++c) columns.push_back(arrays[c % 2][i]);
    const auto of_rows = upload(rows, 1);
    const auto of_columns = upload(columns);
    tuned_reduce(session, spec, of_rows.data + kLength, kLength, out.data(), nullptr);
    check("array", 1, 2);
    tuned_reduce_rows(session, spec, of_rows.data, {kArrays, kLength}, out.data(), nullptr);
    check("row", 0, kArrays);
    tuned_reduce_columns(session, spec, of_columns.data, {.reduced = kLength, .inner = kArrays, .pitch = kPitch},
                         out.data(), nullptr);
    check("column", 0, kArrays);
  }

 private:
  static constexpr int kArrays = 8;
  static constexpr int kPitch = 16;  ///< of columns: rows of several would be one, and a thread have a tile at most
};

using FloatingTypes = testing::Types<half, bfloat16, float, double>;
TYPED_TEST_SUITE(LogsumexpOrders, FloatingTypes);

TYPED_TEST(LogsumexpOrders, EveryElementMayBeLargerThanAllBeforeOrSmaller) {
  Session session(this->device_, this->quick());
  this->expect_right(session, [](std::int64_t i) { return static_cast<double>(i) - 10000; });
  this->expect_right(session, [](std::int64_t i) { return 10000 - static_cast<double>(i); });
  // In steps that every tile takes, and about as high as what a tile may add unseen.
  for (double step : {6.0, 6.8, 6.93, 6.94, 7.0, 8.0})
    this->expect_right(session, [&](std::int64_t i) { return step * static_cast<double>(i / 4000); });
}

TYPED_TEST(LogsumexpOrders, WhatComesLateIsSeen) {
  Session session(this->device_, this->quick());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const double highest = sizeof(TypeParam) == 8 ? std::numeric_limits<double>::max()
                         : kDTypeOf<TypeParam> == DType::f16 ? 65504
                                                             : std::ldexp(255.0, 120);
  std::size_t turn = 0;
  // In a whole tile, or at the end, where elements are taken one by one.
  for (std::int64_t at : {this->kLength * 3 / 4, this->kLength - 1}) {
    for (double late : {kInfinity, kNan, highest, 65504.0, 30.0, 6.93, -highest, -kInfinity}) {
      if (!test::in_share(turn++)) continue;
      this->expect_right(session, [&](std::int64_t i) { return i == at ? late : 0.25; });
      this->expect_right(session, [&](std::int64_t i) { return i == at ? late : -kInfinity; });
      this->expect_right(session, [&](std::int64_t i) { return i == at ? late : -highest; });
    }
    this->expect_right(session, [&](std::int64_t i) { return i == at ? highest : highest * 0.75; });
  }
}

TYPED_TEST(LogsumexpOrders, IgnoredNansMayBeAnywhere) {
  Session session(this->device_, this->quick());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (double other : {0.5, kInfinity, -kInfinity, kNan})
    for (std::int64_t every : {1, 2, 3, 4001})
      this->expect_right(
          session, [&](std::int64_t i) { return i % every == every / 2 ? other : kNan; }, NanPolicy::ignore);
}

}  // namespace
}  // namespace hone
