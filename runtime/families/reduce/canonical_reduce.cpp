// Compiled without contraction of a·b + c, whatever the compiler's default: each operation is rounded by itself.
#include <hone/canonical_reduce.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/families/reduce/canonical_math.h"
#include "runtime/families/reduce/canonical_tree.h"
#include "runtime/families/reduce/reduction_family.h"

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
    first += sequence.first;
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

/// Exponentials relative to the largest element, or to 1 where that is near 0.
template <class A>
struct Exponentials {
  struct State {
    A largest, sum;
  };

  static State of_chunk(const ReduceSpec&, const Chunk<A>& chunk) {
    A largest = -std::numeric_limits<A>::infinity();
    for (const std::optional<A>& x : chunk)
      if (x) largest = larger(largest, *x);
    if (std::isnan(largest)) return {largest, largest};
    return {largest, fold(chunk, [&](A x) { return near_exponential(x - origin(largest)); })};
  }
  static State combine(const ReduceSpec&, const State& a, const State& b) {
    const A largest = larger(a.largest, b.largest);
    const auto rescaled = [&](const State& state) {
      const A from = origin(state.largest), to = origin(largest);
      return state.sum * exponential(from == to ? A(0) : from - to);
    };
    return {largest, rescaled(a) + rescaled(b)};
  }
  static std::array<A, 2> finish(const ReduceSpec&, const State& root) {
    const A largest = root.largest;
    if (std::isinf(largest)) return {largest};
    return {largest + logarithm(root.sum / near_exponential(largest - origin(largest)))};
  }

 private:
  /// A NaN is the largest.
  static A larger(A a, A b) { return std::isnan(a) || a > b ? a : b; }
  static A origin(A largest) { return std::fabs(largest) <= Constants<A>::kMostNear ? A(0) : largest; }
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

/// The chunks of `elements` elements of a sequence of n. A pattern that is repeated often has the same ones again and
/// again: each is computed once.
template <template <class> class Kind, class A>
class Chunks {
 public:
  using State = typename Kind<A>::State;

  Chunks(const ReduceSpec& spec, const Sequence& a, const Sequence& b, std::int64_t elements, std::int64_t n)
      : spec_(spec), a_(a), b_(b), elements_(elements), n_(n) {
    const bool has_same = a.period == b.period && a.first == b.first;
    if (has_same && a.period < count()) known_.resize(static_cast<std::size_t>(a.period));
  }

  std::int64_t count() const { return (n_ + elements_ - 1) / elements_; }

  /// Combines chunks `first` to first + count − 1.
  State combined(std::int64_t first, std::int64_t count) {
    if (count == 0) return Kind<A>::of_chunk(spec_, {});
    return join_chunks(
        first, count, [&](std::int64_t chunk) { return of_chunk(chunk); },
        [&](const State& left, const State& right) { return Kind<A>::combine(spec_, left, right); });
  }

 private:
  State compute(std::int64_t chunk) const {
    const std::int64_t first = chunk * elements_;
    return Kind<A>::of_chunk(spec_, read_chunk<A>(spec_, a_, b_, first, std::min(elements_, n_ - first)));
  }
  State of_chunk(std::int64_t chunk) {
    if (known_.empty() || chunk + 1 == count()) return compute(chunk);
    std::optional<State>& state = known_[static_cast<std::size_t>(chunk * elements_ % a_.period)];
    if (!state) state = compute(chunk);
    return *state;
  }

  const ReduceSpec& spec_;
  const Sequence &a_, &b_;
  std::int64_t elements_, n_;
  std::vector<std::optional<State>> known_;
};

template <template <class> class Kind, class A>
std::array<A, 2> result_of(const ReduceSpec& spec, const Sequence& a, const Sequence& b, std::int64_t n) {
  Chunks<Kind, A> chunks(spec, a, b, chunk_elements(spec.dtype), n);
  return Kind<A>::finish(spec, chunks.combined(0, chunks.count()));
}

/// Calls use<Kind>() for what the operation's States are.
template <class Use>
auto with_kind(ReduceOp op, const Use& use) {
  if (op == ReduceOp::mean_variance) return use.template operator()<Moments>();
  if (op == ReduceOp::logsumexp) return use.template operator()<Exponentials>();
  return use.template operator()<Totals>();
}

template <class State>
std::vector<std::byte> bytes_of(const ReduceSpec& spec, const State& state) {
  std::vector<std::byte> bytes;
  const auto add = [&](auto value) {
    bytes.resize(bytes.size() + sizeof(value));
    std::memcpy(bytes.data() + bytes.size() - sizeof(value), &value, sizeof(value));
  };
  if constexpr (requires { state.pivot; }) add(state.count), add(state.pivot), add(state.sum), add(state.squares);
  else if constexpr (requires { state.largest; }) add(state.largest), add(state.sum);
  else if (spec.op == ReduceOp::mean && spec.nan == NanPolicy::ignore) add(state.count), add(state.value);
  else add(state.value);
  return bytes;
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
  with_kind(spec.op, [&]<template <class> class Kind>() {
    if (spec.accumulator_dtype() == DType::f32) write(result_of<Kind, float>(spec, a, b, n));
    else write(result_of<Kind, double>(spec, a, b, n));
  });
}

Nodes nodes_of(const ReduceSpec& spec, const Sequence& a, const Sequence& b, std::int64_t elements_of_chunk) {
  return with_kind(spec.op, [&]<template <class> class Kind>() -> Nodes {
    const auto nodes = [&]<class A>(A) -> Nodes {
      constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max() / 2;
      // Shared, because a function is copied.
      const auto chunks = std::make_shared<Chunks<Kind, A>>(spec, a, b, elements_of_chunk, kEndless);
      return [&spec, chunks](std::int64_t first, std::int64_t count) {
        return bytes_of(spec, chunks->combined(first, count));
      };
    };
    return spec.accumulator_dtype() == DType::f32 ? nodes(float{}) : nodes(double{});
  });
}

}  // namespace canonical

void canonical_reduce(const ReduceSpec& spec, const HostArray& a, const HostArray& b, std::int64_t n, void* out) {
  const auto fail = [&](ErrorCode code, std::string_view why) {
    throw Error(code, fmt::format("canonical_reduce: {} of {}: {}", name(spec.op), info(spec.dtype).name, why));
  };
  if (const std::string fault = dtypes_fault(spec); !fault.empty()) fail(ErrorCode::invalid_argument, fault);
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
