#include "tests/runtime/families/serial_reduce.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace hone {
namespace {

/// Few for small arrays, so that lanes have several elements; many for large ones, so that chains are as short as a
/// kernel's.
std::size_t lanes_of(std::int64_t n) { return n < 5000 ? 32 : 8192; }

template <class T>
auto plain(T value) {
  if constexpr (std::is_class_v<T>) return static_cast<float>(value);
  else return value;
}

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_class_v<To>) return To(static_cast<float>(value));
  else return static_cast<To>(value);
}

/// Arithmetic that wraps where the type is an integer.
template <class A>
A plus(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else return a + b;
}
template <class A>
A times(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else return a * b;
}
template <class A, class X>
A magnitude(X x) {
  if constexpr (std::is_floating_point_v<X>) return static_cast<A>(std::fabs(x));
  else if constexpr (std::is_floating_point_v<A>) return std::fabs(static_cast<A>(x));
  else if constexpr (std::is_signed_v<X>) return static_cast<A>(x < 0 ? 0 - static_cast<std::uint64_t>(x) : x);
  else return static_cast<A>(x);
}
template <class A>
bool is_nan(A a) {
  return a != a;
}

/// Everything that any operation needs of the elements that a lane has seen.
template <class A>
struct Partial {
  A sum = 0;
  A product = 1;
  A smallest =
      std::numeric_limits<A>::has_infinity ? std::numeric_limits<A>::infinity() : std::numeric_limits<A>::max();
  A largest =
      std::numeric_limits<A>::has_infinity ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::lowest();
  std::int64_t first_smallest = -1;
  std::int64_t first_largest = -1;
  std::int64_t count = 0;
  std::int64_t nonzeros = 0;
  A mean = 0;
  A deviations = 0;
  A exponentials = 0;

  void merge(ReduceOp op, const Partial& other) {
    if (other.count == 0) return;
    if (count == 0) {
      *this = other;
      return;
    }
    sum = plus(sum, other.sum);
    product = times(product, other.product);
    if (op == ReduceOp::mean_variance) merge_moments(other);
    if (op == ReduceOp::logsumexp) merge_exponentials(other);
    if (beats(other.smallest, other.first_smallest, smallest, first_smallest, other.smallest < smallest)) {
      smallest = other.smallest;
      first_smallest = other.first_smallest;
    }
    if (beats(other.largest, other.first_largest, largest, first_largest, other.largest > largest)) {
      largest = other.largest;
      first_largest = other.first_largest;
    }
    count += other.count;
    nonzeros += other.nonzeros;
  }

 private:
  static bool beats(A theirs, std::int64_t their_index, A ours, std::int64_t our_index, bool better) {
    if (is_nan(theirs) != is_nan(ours)) return is_nan(theirs);
    const bool tie = theirs == ours || (is_nan(theirs) && is_nan(ours));
    return better || (tie && their_index < our_index);
  }

  void merge_moments(const Partial& other) {
    if constexpr (std::is_floating_point_v<A>) {
      const A n = static_cast<A>(count + other.count);
      const A delta = other.mean - mean;
      const A part = static_cast<A>(other.count) / n;
      mean += delta * part;
      deviations += other.deviations + delta * delta * part * static_cast<A>(count);
    }
  }

  void merge_exponentials(const Partial& other) {
    if constexpr (std::is_floating_point_v<A>) {
      const A top = is_nan(largest) || is_nan(other.largest) ? std::numeric_limits<A>::quiet_NaN()
                                                             : std::max(largest, other.largest);
      if (std::isinf(top)) {
        exponentials = top > 0 ? 1 : 0;
        return;
      }
      exponentials = exponentials * std::exp(largest - top) + other.exponentials * std::exp(other.largest - top);
    }
  }
};

/// `pivot` is what means are counted from.
template <class A, class X>
Partial<A> of_element(ReduceOp op, X element, X other, A pivot, std::int64_t index) {
  const A x = static_cast<A>(element), y = static_cast<A>(other);
  A term = x;
  if (op == ReduceOp::sum_of_squares || op == ReduceOp::l2_norm) term = times(x, x);
  if (op == ReduceOp::l1_norm) term = magnitude<A>(element);
  if (op == ReduceOp::dot) term = times(x, y);
  const A extreme = op == ReduceOp::max_norm ? magnitude<A>(element) : x;
  Partial<A> partial;
  partial.sum = term;
  partial.product = x;
  partial.smallest = partial.largest = extreme;
  partial.first_smallest = partial.first_largest = index;
  partial.count = 1;
  partial.nonzeros = element != 0 ? 1 : 0;
  partial.mean = x - pivot;
  partial.deviations = x - x;  // NaN of NaN and of infinities
  partial.exponentials = 1;
  return partial;
}

/// Means of integers are divided in double.
template <class A>
using Quotient = std::conditional_t<std::is_integral_v<A>, double, A>;

template <class R, class A>
std::array<R, 2> finish(ReduceOp op, const Partial<A>& total, A pivot) {
  using Q = Quotient<A>;
  const Q n = static_cast<Q>(total.count);
  const Q nan = std::numeric_limits<Q>::quiet_NaN();
  switch (op) {
    case ReduceOp::product: return {convert<R>(total.product)};
    case ReduceOp::min: return {convert<R>(total.smallest)};
    case ReduceOp::max: return {convert<R>(total.largest)};
    case ReduceOp::minmax: return {convert<R>(total.smallest), convert<R>(total.largest)};
    case ReduceOp::range:
      if (total.largest < total.smallest) return {R{}};
      if constexpr (std::is_integral_v<A>)
        return {convert<R>(static_cast<std::uint64_t>(total.largest) - static_cast<std::uint64_t>(total.smallest))};
      else return {convert<R>(total.largest - total.smallest)};
    case ReduceOp::argmin: return {convert<R>(total.first_smallest)};
    case ReduceOp::argmax: return {convert<R>(total.first_largest)};
    case ReduceOp::mean: return {convert<R>(total.count == 0 ? nan : static_cast<Q>(total.sum) / n)};
    case ReduceOp::mean_variance:
      return {convert<R>(total.count == 0 ? nan : static_cast<Q>(total.mean + pivot)),
              convert<R>(total.count == 0 ? nan : static_cast<Q>(total.deviations) / n)};
    case ReduceOp::l2_norm: return {convert<R>(std::sqrt(static_cast<Q>(total.sum)))};
    case ReduceOp::max_norm: return {convert<R>(total.count == 0 ? A{0} : total.largest)};
    case ReduceOp::logsumexp:
      return {convert<R>(std::isinf(static_cast<Q>(total.largest)) ? static_cast<Q>(total.largest)
                                                                 : static_cast<Q>(total.largest) +
                                                                       std::log(static_cast<Q>(total.exponentials)))};
    case ReduceOp::any: return {convert<R>(total.nonzeros > 0 ? 1 : 0)};
    case ReduceOp::all: return {convert<R>(total.nonzeros == total.count ? 1 : 0)};
    case ReduceOp::count_nonzero: return {convert<R>(total.nonzeros)};
    default: return {convert<R>(total.sum)};
  }
}

/// An accumulator of 32 bits is as good here as one of 64, which holds the identities of the narrower elements too.
template <class A>
using Working = std::conditional_t<std::is_same_v<A, std::int32_t>, std::int64_t,
                                   std::conditional_t<std::is_same_v<A, std::uint32_t>, std::uint64_t, A>>;

template <class T>
T element(const std::vector<std::byte>& pattern, std::int64_t i) {
  const std::size_t at = static_cast<std::size_t>(i) % (pattern.size() / sizeof(T));
  T value;
  std::memcpy(&value, pattern.data() + at * sizeof(T), sizeof(T));
  return value;
}

/// The first element that is finite.
template <class T, class A>
A pivot_of(const std::vector<std::byte>& pattern) {
  for (std::size_t i = 0; i < pattern.size() / sizeof(T); ++i) {
    const auto x = static_cast<A>(plain(element<T>(pattern, static_cast<std::int64_t>(i))));
    if (!std::is_floating_point_v<A> || std::isfinite(static_cast<double>(x))) return x;
  }
  return 0;
}

template <class T, class A>
Partial<A> reduce_all(const ReduceSpec& spec, std::int64_t n, ArrayBytes patterns, A pivot, Fault fault) {
  std::vector<Partial<A>> lanes(lanes_of(n));
  const auto add = [&](std::int64_t i) {
    const auto x = plain(element<T>(patterns[0], i));
    const auto y = plain(element<T>(patterns[patterns.size() - 1], i));
    if (spec.nan == NanPolicy::ignore && (is_nan(x) || is_nan(y))) return;
    // The position counts what came before: a reader that loses an element loses its place.
    const std::int64_t index = fault.missing && i > *fault.missing ? i - 1 : i;
    lanes[static_cast<std::size_t>(i) % lanes.size()].merge(
        spec.op, of_element<A>(spec.op, x, y, pivot, index));
  };
  for (std::int64_t i = 0; i < n; ++i) {
    if (fault.missing == i) continue;
    add(i);
    if (fault.doubled == i) add(i);
  }
  for (std::size_t half = lanes.size() / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane].merge(spec.op, lanes[lane + half]);
  Partial<A> total = lanes[0];
  if (total.count == 0) {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_integral_v<T>) {
      total.smallest = static_cast<A>(Limits::max());
      total.largest = static_cast<A>(Limits::min());
    }
  }
  return total;
}

}  // namespace

std::int64_t serial_chain(std::int64_t n) {
  constexpr int kLevels = 13;  // of the tree
  return n / static_cast<std::int64_t>(lanes_of(n)) + 1 + kLevels;
}

std::vector<std::byte> serial_reduce(const ReduceSpec& spec, std::int64_t n, ArrayBytes patterns, Fault fault) {
  return with_element_type(spec.dtype, [&]<class T>(T) {
    return with_element_type(spec.accumulator_dtype(), [&]<class A>(A) -> std::vector<std::byte> {
      if constexpr (std::is_arithmetic_v<A> && !std::is_same_v<A, bool> && sizeof(A) >= 4) {
        using W = Working<A>;
        const W pivot = spec.op == ReduceOp::mean_variance ? pivot_of<T, W>(patterns[0]) : W{0};
        const Partial<W> total = reduce_all<T, W>(spec, n, patterns, pivot, fault);
        return with_element_type(spec.result_dtype(), [&]<class R>(R) {
          const std::array<R, 2> values = finish<R>(spec.op, total, pivot);
          const auto bytes = std::as_bytes(std::span(values).first(static_cast<std::size_t>(info(spec.op).outputs)));
          return std::vector<std::byte>(bytes.begin(), bytes.end());
        });
      }
      return {};
    });
  });
}

}  // namespace hone
