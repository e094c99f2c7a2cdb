// Expectation: the values that one result of a reduction may have, before it is stored in its dtype.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <hone/dtype.h>

namespace hone::reduce_reference {

static_assert(sizeof(long double) > sizeof(double), "the reference needs a long double that is wider than double");

/// Elements as numbers, exactly. Bytes of bool other than 0 count as 1.
std::vector<long double> decode(DType dtype, std::span<const std::byte> bytes);

/// The bounds of a dtype; infinities where it has them.
long double highest_value(DType dtype);
long double lowest_value(DType dtype);

class Expectation {
 public:
  Expectation() = default;

  /// This value, NaN and infinities included.
  static Expectation exactly(long double value);

  /// A result of a computation in `arithmetic` that may be off by so much.
  static Expectation near(long double value, long double error, DType arithmetic);
  static Expectation between(long double lowest, long double highest, DType arithmetic);

  /// NaN will do as well.
  Expectation or_nan() const;

  /// "" if `found`, stored as `result`, is what such a value rounds to; else "expected …, found …, allowed …". Rounding
  /// is monotone, so what lies between the bounds lies between the rounded bounds.
  std::string compare(DType result, long double found) const;

 private:
  Expectation(long double value, long double lowest, long double highest)
      : value_(value), lowest_(lowest), highest_(highest) {}

  long double value_ = 0;
  long double lowest_ = 0;
  long double highest_ = 0;
  bool or_nan_ = false;
};

}  // namespace hone::reduce_reference
