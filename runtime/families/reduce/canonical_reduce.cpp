// Compiled without contraction of a·b + c, whatever the compiler's default: each operation is rounded by itself.
#include <hone/canonical_reduce.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/families/reduce/canonical_math.h"
#include "runtime/families/reduce/canonical_tree.h"
#include "runtime/families/reduce/reduce_family.h"

namespace hone {
namespace canonical {
namespace {

/// The elements of a chunk as accumulators, those of a dot multiplied; none where a NaN is ignored.
template <class A>
using Chunk = std::vector<std::optional<A>>;

template <class A>
std::vector<A> read(DType dtype, const Sequence& sequence, std::int64_t first, std::int64_t count) {
  std::vector<A> values(static_cast<std::size_t>(count));
  with_element_type(dtype, [&]<class T>(T) {
    std::int64_t at = sequence.period > 0 ? first % sequence.period : first * sequence.stride;
    for (A& value : values) {
      std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T> element;
      std::memcpy(&element, sequence.bytes + at * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
      if constexpr (std::is_same_v<T, bool>) value = A(element != 0 ? 1 : 0);
      else if constexpr (std::is_class_v<T>) value = static_cast<A>(static_cast<float>(element));
      else value = static_cast<A>(element);
      at += sequence.period > 0 ? 1 : sequence.stride;
      if (at == sequence.period && sequence.period > 0) at = 0;
    }
  });
  return values;
}

template <class A>
Chunk<A> read_chunk(const ReduceSpec& spec, const Sequence& a, const Sequence& b, std::int64_t first,
                    std::int64_t count) {
  const std::vector<A> values = read<A>(spec.dtype, a, first, count);
  const std::vector<A> others = spec.op == ReduceOp::dot ? read<A>(spec.dtype, b, first, count) : std::vector<A>{};
  Chunk<A> chunk(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool has_nan = std::isnan(values[i]) || (!others.empty() && std::isnan(others[i]));
    if (spec.nan == NanPolicy::ignore && has_nan) continue;
    chunk[i] = others.empty() ? values[i] : values[i] * others[i];
  }
  return chunk;
}

template <class A>
std::int64_t count_of(const Chunk<A>& chunk) {
  return std::count_if(chunk.begin(), chunk.end(), [](const std::optional<A>& x) { return x.has_value(); });
}

/// The fold of the terms of the elements that are there, by + unless another combination is given.
template <class A, class Term>
A fold(const Chunk<A>& chunk, const Term& term) {
  std::vector<A> terms(chunk.size(), -A(0));
  for (std::size_t i = 0; i < terms.size(); ++i)
    if (chunk[i]) terms[i] = term(*chunk[i]);
  return fold_in_halves(std::move(terms), -A(0), [](A a, A b) { return a + b; });
}

/// Sums, products and norms; means divide by the count.
template <class A>
struct Totals {
  struct State {
    A value;
    std::int64_t count = 0;
  };

  static State of_chunk(const ReduceSpec& spec, const Chunk<A>& chunk) {
    if (spec.op == ReduceOp::product) {
      std::vector<A> factors(chunk.size());
      std::transform(chunk.begin(), chunk.end(), factors.begin(), [](const auto& x) { return x.value_or(A(1)); });
      return {fold_in_halves(std::move(factors), A(1), [](A a, A b) { return a * b; })};
    }
    const bool squares = spec.op == ReduceOp::sum_of_squares || spec.op == ReduceOp::l2_norm;
    const bool magnitudes = spec.op == ReduceOp::l1_norm;
    const A value = fold(chunk, [&](A x) { return squares ? x * x : magnitudes ? std::fabs(x) : x; });
    return {value, count_of(chunk)};
  }
  static State combine(const ReduceSpec& spec, const State& a, const State& b) {
    return {spec.op == ReduceOp::product ? a.value * b.value : a.value + b.value, a.count + b.count};
  }
  static std::array<A, 2> finish(const ReduceSpec& spec, const State& root) {
    if (spec.op == ReduceOp::product) return {root.value};
    const A sum = root.value + A(0);  // a sum of −0, or of nothing, is 0
    if (spec.op == ReduceOp::mean) return {sum / static_cast<A>(root.count)};
    return {spec.op == ReduceOp::l2_norm ? std::sqrt(sum) : sum};
  }
};

/// Deviations from an element of each chunk; chunks combine by the formulae of Chan, Golub and LeVeque.
template <class A>
struct Moments {
  struct State {
    std::int64_t count = 0;
    A pivot, sum, squares;
  };

  static State of_chunk(const ReduceSpec&, const Chunk<A>& chunk) {
    const std::int64_t count = count_of(chunk);
    if (count == 0) return {0, A(0), A(0), A(0)};
    constexpr A kMost = std::is_same_v<A, float> ? A(0x1p86) : A(0x1p982);
    const A first = **std::find_if(chunk.begin(), chunk.end(), [](const auto& x) { return x.has_value(); });
    const A pivot = std::fabs(first) <= kMost ? first : A(0);
    const A sum = fold(chunk, [&](A x) { return x - pivot; });
    const A mean = sum / static_cast<A>(count);
    const A squares = fold(chunk, [&](A x) {
      const A deviation = (x - pivot) - mean;
      return deviation * deviation;
    });
    return {count, pivot, sum, squares};
  }
  static State combine(const ReduceSpec&, const State& a, const State& b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const A count_a = static_cast<A>(a.count), count_b = static_cast<A>(b.count);
    const A mean_a = a.sum / count_a, mean_b = b.sum / count_b;
    const A between = b.pivot - a.pivot;
    const A apart = between + (mean_b - mean_a);
    const A weight = count_a * (count_b / (count_a + count_b));
    const bool keeps_a = std::fabs(mean_a) <= std::fabs(mean_b);
    const A moved = keeps_a ? between * count_b : -between * count_a;
    return {a.count + b.count, keeps_a ? a.pivot : b.pivot, (a.sum + b.sum) + moved,
            (a.squares + b.squares) + (apart * apart) * weight};
  }
  static std::array<A, 2> finish(const ReduceSpec&, const State& root) {
    const A count = static_cast<A>(root.count);
    return {mean_about_pivot(root.pivot, root.sum, count), root.squares / count};
  }

 private:
  /// (pivot · count + sum) ÷ count, compensated for the rounding errors of product, sum and quotient.
  static A mean_about_pivot(A pivot, A sum, A count) {
    const A product = pivot * count;
    const A total = product + sum;
    const A of_product = total - sum;
    const A lost = std::fma(pivot, count, -product) + ((product - of_product) + (sum - (total - of_product)));
    const A quotient = total / count;
    const A rest = std::fma(-quotient, count, total) + lost;
    return std::isnan(rest) ? quotient : quotient + rest / count;
  }
};

/// Exponentials relative to the largest element.
template <class A>
struct Exponentials {
  struct State {
    A largest, sum;
  };

  static State of_chunk(const ReduceSpec&, const Chunk<A>& chunk) {
    A largest = -std::numeric_limits<A>::infinity();
    for (const std::optional<A>& x : chunk)
      if (x) largest = larger(largest, *x);
    return {largest, fold(chunk, [&](A x) { return relative(x, largest); })};
  }
  static State combine(const ReduceSpec&, const State& a, const State& b) {
    const A largest = larger(a.largest, b.largest);
    return {largest, a.sum * relative(a.largest, largest) + b.sum * relative(b.largest, largest)};
  }
  static std::array<A, 2> finish(const ReduceSpec&, const State& root) {
    return {std::isinf(root.largest) ? root.largest : root.largest + logarithm(root.sum)};
  }

 private:
  /// A NaN is the largest.
  static A larger(A a, A b) { return std::isnan(a) || a > b ? a : b; }
  static A relative(A x, A largest) { return exponential(x == largest ? A(0) : x - largest); }
};

/// A float from which rounding to fewer digits gives what rounding `x` would: inexact ones get an odd last digit.
float rounded_to_odd(double x) {
  float nearest = static_cast<float>(x);
  if (std::isnan(x) || static_cast<double>(nearest) == x) return nearest;
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(x)) nearest = std::nextafter(nearest, 0.0f);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) | 1u);
}

/// The quiet NaN of IEEE 754 with no other bits, in the upper bits of a float: f32, f16 and bf16. f8e4m3 has only one.
template <class T>
T quiet_nan() {
  T nan = std::numeric_limits<T>::quiet_NaN();
  if constexpr (std::is_class_v<T> && std::numeric_limits<T>::has_infinity)
    nan.bits = static_cast<decltype(nan.bits)>(nan.bits & ~((1u << (std::numeric_limits<T>::digits - 2)) - 1));
  return nan;
}

/// A pattern that is repeated often has the same chunks again and again: each is computed once.
template <template <class> class Kind, class A>
std::array<A, 2> result_of(const ReduceSpec& spec, const Sequence& a, const Sequence& b, std::int64_t n) {
  using State = typename Kind<A>::State;
  const std::int64_t elements = chunk_elements(spec.dtype), chunks = (n + elements - 1) / elements;
  std::vector<std::optional<State>> known(
      a.period == b.period && a.period < chunks ? static_cast<std::size_t>(a.period) : 0);
  const auto compute = [&](std::int64_t chunk) {
    const std::int64_t first = chunk * elements;
    return Kind<A>::of_chunk(spec, read_chunk<A>(spec, a, b, first, std::min(elements, n - first)));
  };
  const auto of_chunk = [&](std::int64_t chunk) {
    if (known.empty() || chunk + 1 == chunks) return compute(chunk);
    std::optional<State>& state = known[static_cast<std::size_t>(chunk * elements % a.period)];
    if (!state) state = compute(chunk);
    return *state;
  };
  if (chunks == 0) return Kind<A>::finish(spec, Kind<A>::of_chunk(spec, {}));
  const auto combine = [&](const State& left, const State& right) { return Kind<A>::combine(spec, left, right); };
  return Kind<A>::finish(spec, join_chunks(0, chunks, of_chunk, combine));
}

template <class A>
std::array<A, 2> results_of(const ReduceSpec& spec, const Sequence& a, const Sequence& b, std::int64_t n) {
  if (spec.op == ReduceOp::mean_variance) return result_of<Moments, A>(spec, a, b, n);
  if (spec.op == ReduceOp::logsumexp) return result_of<Exponentials, A>(spec, a, b, n);
  return result_of<Totals, A>(spec, a, b, n);
}

}  // namespace

template <class A>
void store(DType dtype, A value, std::byte* out) {
  with_element_type(dtype, [&]<class T>(T result) {
    if constexpr (info(kDTypeOf<T>).is_floating()) {
      if (std::isnan(value)) result = quiet_nan<T>();
      else if constexpr (std::is_class_v<T>) result = T(rounded_to_odd(value));
      else result = static_cast<T>(value);
      std::memcpy(out, &result, sizeof(T));
    }
  });
}

template void store(DType dtype, float value, std::byte* out);
template void store(DType dtype, double value, std::byte* out);

void reduce(const ReduceSpec& spec, const Sequence& a, const Sequence& b, std::int64_t n, std::byte* out) {
  const auto write = [&](const auto& results) {
    for (int i = 0; i < info(spec.op).outputs; ++i)
      store(spec.result_dtype(), results[static_cast<std::size_t>(i)],
            out + static_cast<std::size_t>(i) * info(spec.result_dtype()).size_bytes);
  };
  if (spec.accumulator_dtype() == DType::f32) write(results_of<float>(spec, a, b, n));
  else write(results_of<double>(spec, a, b, n));
}

}  // namespace canonical

void canonical_reduce(const ReduceSpec& spec, const HostArray& a, const HostArray& b, std::int64_t n, void* out) {
  const auto fail = [&](ErrorCode code, std::string_view why) {
    throw Error(code, fmt::format("canonical_reduce: {} of {}: {}", name(spec.op), info(spec.dtype).name, why));
  };
  if (const std::string refusal = refuse_dtypes(spec); !refusal.empty()) fail(ErrorCode::invalid_argument, refusal);
  if (!reduce_depends_on_order(spec.op, spec.dtype, spec.accumulator_dtype()))
    fail(ErrorCode::unsupported, "the result does not depend on an order, so any loop gives its bits");
  if (n < 0) fail(ErrorCode::invalid_argument, fmt::format("n is {}, but a size cannot be negative", n));
  if (n > 0 && (!a.first || (info(spec.op).inputs == 2 && !b.first)))
    fail(ErrorCode::invalid_argument, "an array is null; pass host memory");
  if (!out) fail(ErrorCode::invalid_argument, "'out' is null; pass host memory");
  const auto sequence = [](const HostArray& array) {
    return canonical::Sequence{.bytes = static_cast<const std::byte*>(array.first), .stride = array.stride};
  };
  canonical::reduce(spec, sequence(a), sequence(b), n, static_cast<std::byte*>(out));
}

}  // namespace hone
