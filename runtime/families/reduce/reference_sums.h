// Sums over the elements of a reduction, in long double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hone/reduce_spec.h>

namespace hone::reduce_reference {

using Wide = long double;

/// The pattern repeated to n elements: `whole` times all of it, then its first `rest` elements.
struct Repetition {
  std::int64_t whole = 0;
  std::size_t rest = 0;
  std::size_t period = 0;

  Repetition(std::int64_t n, std::size_t length) {
    if (length == 0) return;
    whole = n / static_cast<std::int64_t>(length);
    rest = static_cast<std::size_t>(n % static_cast<std::int64_t>(length));
    period = whole == 0 ? rest : length;
  }
};

/// The inputs of a call, decoded.
struct Inputs {
  const ReduceSpec& spec;
  std::int64_t chain;
  std::vector<Wide> first;
  std::vector<Wide> second;  ///< of dot
  Repetition repetition;

  bool is_absent(std::size_t i) const {
    return spec.nan == NanPolicy::ignore && (std::isnan(first[i]) || (!second.empty() && std::isnan(second[i])));
  }

  bool accumulates_integers() const { return !info(spec.accumulator_dtype()).is_floating(); }

  /// The precision in which roundings happen: means of integers are divided in f64.
  DType arithmetic() const { return accumulates_integers() ? DType::f64 : spec.accumulator_dtype(); }
  Wide unit() const { return std::ldexp(Wide{1}, -info(arithmetic()).digits); }

  /// 1 if the conversion to the accumulator rounds: wide integers in floating point.
  int conversion_roundings() const {
    const DTypeInfo& element = info(spec.dtype);
    const int bits = static_cast<int>(8 * element.size_bytes);
    return !element.is_floating() && !accumulates_integers() && bits > info(arithmetic()).digits ? 1 : 0;
  }
};

/// False for 2^62 and more, which is too large to be summed exactly.
inline bool is_integer(Wide x) { return std::fabs(x) < 0x1p62 && static_cast<Wide>(static_cast<std::int64_t>(x)) == x; }

/// Sums over some elements.
struct Sums {
  Wide value = 0;
  Wide magnitude = 0;  ///< of absolute values
  Wide squares = 0;
  Wide largest = 0;  ///< absolute value
  bool integral = true;
  std::int64_t count = 0;

  Sums& operator+=(const Sums& other) {
    value += other.value;
    magnitude += other.magnitude;
    squares += other.squares;
    largest = std::max(largest, other.largest);
    integral = integral && other.integral;
    count += other.count;
    return *this;
  }

  void add(Wide x) {
    const Wide magnitude_of_x = std::fabs(x);
    *this += {x, magnitude_of_x, x * x, magnitude_of_x, integral && is_integer(x), 1};
  }

  Sums times(std::int64_t factor) const {
    if (factor == 0) return {};
    const auto wide = static_cast<Wide>(factor);
    return {value * wide, magnitude * wide, squares * wide, largest, integral, count * factor};
  }
};

/// Pairwise, so that the reference's own error (about 50 roundings of 2^-64) is far below that of any kernel.
template <class Term>
Sums sum_between(const Inputs& inputs, std::size_t first, std::size_t last, Term term) {
  Sums sums;
  if (last - first <= 32) {
    for (std::size_t i = first; i < last; ++i)
      if (!inputs.is_absent(i)) sums.add(term(i));
    return sums;
  }
  const std::size_t middle = first + (last - first) / 2;
  sums = sum_between(inputs, first, middle, term);
  return sums += sum_between(inputs, middle, last, term);
}

/// Over all n elements. term(i) belongs to element i of the pattern.
template <class Term>
Sums sum_all(const Inputs& inputs, Term term) {
  const Repetition& repetition = inputs.repetition;
  const Sums rest = sum_between(inputs, 0, repetition.rest, term);
  Sums all = rest;
  if (repetition.whole > 0) all += sum_between(inputs, repetition.rest, repetition.period, term);
  all = all.times(repetition.whole);
  return all += rest;
}

}  // namespace hone::reduce_reference
