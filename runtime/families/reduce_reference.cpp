#include "runtime/families/reduce_reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

#include <fmt/format.h>

namespace hone::reduce_reference {
namespace {

constexpr std::int64_t kPeriod = 1048573;  // the largest prime below 2^20: no multiple of any tile

constexpr std::array<std::string_view, 6> kFloatKinds{"uniform",  "small_integers",  "cancelling", "nan",
                                                      "infinity", "both_infinities"};
constexpr std::array<std::string_view, 2> kIntegerKinds{"uniform", "extreme"};

constexpr int kSmallInteger = 4;

template <class T>
std::vector<T> make_pattern(std::int64_t n, std::string_view kind) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> pattern(static_cast<std::size_t>(std::min(n, kPeriod)));
  std::mt19937_64 random(n);
  if constexpr (std::is_floating_point_v<T>) {
    std::uniform_real_distribution<T> uniform(-1, 1);
    for (T& x : pattern) x = uniform(random);
    if (pattern.empty()) return pattern;
    if (kind == "small_integers") {
      // In pairs of opposite sign, so that sums stay small however often the pattern repeats.
      for (std::size_t i = 0; i < pattern.size(); ++i)
        pattern[i] = i % 2 == 0 ? std::copysign(std::ceil(std::fabs(pattern[i]) * kSmallInteger), pattern[i])
                                : -pattern[i - 1];
      std::shuffle(pattern.begin(), pattern.end(), random);
    }
    if (kind == "cancelling")
      for (std::size_t i = 1; i < pattern.size(); i += 2) pattern[i] = -pattern[i - 1];
    if (kind == "nan") pattern.back() = Limits::quiet_NaN();
    if (kind == "infinity" || kind == "both_infinities") pattern.back() = Limits::infinity();
    if (kind == "both_infinities") pattern.front() = -Limits::infinity();
  } else {
    std::uniform_int_distribution<T> uniform(Limits::min(), Limits::max());
    for (T& x : pattern) x = uniform(random);
    if (kind == "extreme")
      for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = i % 3 == 0 ? Limits::min() : Limits::max();
  }
  return pattern;
}

template <class T>
std::vector<T> from_bytes(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <class T>
bool same(T a, T b) {
  return a == b || (a != a && b != b);
}

template <class T>
std::string report(T expected, T found, std::string_view allowed) {
  return fmt::format("expected {}, found {}, allowed {}", expected, found, allowed);
}

/// The pattern repeated to n elements: `whole` times all of it, then its first `rest` elements.
struct Repetition {
  std::int64_t whole;
  std::size_t rest;

  Repetition(std::int64_t n, std::size_t period)
      : whole(period == 0 ? 0 : n / static_cast<std::int64_t>(period)),
        rest(period == 0 ? 0 : static_cast<std::size_t>(n % static_cast<std::int64_t>(period))) {}
};

/// Sum of f(x) over the repeated pattern, in extended precision.
template <class T, class F>
long double wide_sum(const std::vector<T>& pattern, Repetition repetition, F f) {
  long double rest = 0;
  for (std::size_t i = 0; i < repetition.rest; ++i) rest += f(pattern[i]);
  if (repetition.whole == 0) return rest;
  long double period = 0;
  for (T x : pattern) period += f(x);
  return static_cast<long double>(repetition.whole) * period + rest;
}

/// Whether every partial sum is exact in T: random signs keep the sums of small integers far below 2^24, so that a single
/// element that is missing or counted twice shows.
template <class T>
bool sums_exactly(const std::vector<T>& pattern) {
  return std::all_of(pattern.begin(), pattern.end(),
                     [](T x) { return std::fabs(x) <= kSmallInteger && x == std::round(x); });
}

template <class T>
std::string verify_float_sum(const std::vector<T>& pattern, std::int64_t n, std::int64_t chain, T found) {
  const Repetition repetition(n, pattern.size());
  const long double exact = wide_sum(pattern, repetition, [](T x) -> long double { return x; });
  if (!std::isfinite(exact)) {
    return same(found, static_cast<T>(exact)) ? "" : report(static_cast<T>(exact), found, "nothing else");
  }
  const long double magnitude = wide_sum(pattern, repetition, [](T x) -> long double { return std::fabs(x); });
  const long double unit = std::numeric_limits<T>::epsilon() / 2;
  const long double allowed =
      sums_exactly(pattern) ? 0 : static_cast<long double>(chain) * unit * magnitude + unit * std::fabs(exact);
  if (std::fabs(static_cast<long double>(found) - exact) <= allowed) return "";
  return report(static_cast<T>(exact), found, fmt::format("± {:.3g}", static_cast<double>(allowed)));
}

/// Wraps modulo 2^64, as the kernel does.
template <class T>
std::string verify_integer_sum(const std::vector<T>& pattern, std::int64_t n, std::int64_t found) {
  const Repetition repetition(n, pattern.size());
  std::uint64_t period = 0;
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    period += static_cast<std::uint64_t>(static_cast<std::int64_t>(pattern[i]));
    if (i + 1 == repetition.rest) rest = period;
  }
  const auto exact = static_cast<std::int64_t>(static_cast<std::uint64_t>(repetition.whole) * period + rest);
  return exact == found ? "" : report(exact, found, "nothing else");
}

template <class T>
T extreme(ReduceOp op, const std::vector<T>& values) {
  using Limits = std::numeric_limits<T>;
  const bool is_min = op == ReduceOp::min;
  T result = Limits::has_infinity ? (is_min ? Limits::infinity() : -Limits::infinity())
                                  : (is_min ? Limits::max() : Limits::min());
  for (T x : values) {
    if (x != x) return x;
    result = is_min ? std::min(result, x) : std::max(result, x);
  }
  return result;
}

template <class T>
std::string verify_typed(ReduceOp op, std::int64_t n, std::int64_t chain, std::span<const std::byte> pattern_bytes,
                         std::span<const std::byte> output) {
  const std::vector<T> pattern = from_bytes<T>(pattern_bytes);
  if (op != ReduceOp::sum) {
    const T expected = extreme(op, pattern);
    const T found = from_bytes<T>(output)[0];
    return same(expected, found) ? "" : report(expected, found, "nothing else");
  }
  if constexpr (std::is_floating_point_v<T>) {
    return verify_float_sum(pattern, n, chain, from_bytes<T>(output)[0]);
  } else {
    return verify_integer_sum(pattern, n, from_bytes<std::int64_t>(output)[0]);
  }
}

/// Calls f with a value of the C++ type of `dtype`.
template <class F>
auto with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    case DType::i32: return f(std::int32_t{});
    case DType::i64: break;
  }
  return f(std::int64_t{});
}

}  // namespace

std::span<const std::string_view> input_kinds(DType dtype) {
  if (info(dtype).is_floating) return kFloatKinds;
  return kIntegerKinds;
}

std::vector<std::byte> input_pattern(DType dtype, std::int64_t n, std::string_view kind) {
  return with_type(dtype, [&]<class T>(T) {
    const std::vector<T> pattern = make_pattern<T>(n, kind);
    const auto bytes = std::as_bytes(std::span(pattern));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  });
}

std::string verify(ReduceOp op, DType dtype, std::int64_t n, std::int64_t chain, std::span<const std::byte> pattern,
                   std::span<const std::byte> output) {
  return with_type(dtype, [&]<class T>(T) { return verify_typed<T>(op, n, chain, pattern, output); });
}

}  // namespace hone::reduce_reference
