// The definition of reproducible softmax, over elements in host memory. Compiled without contraction of a·b + c.
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "runtime/families/expectation.h"
#include "runtime/families/reduce/canonical_math.h"
#include "runtime/families/reduce/canonical_tree.h"
#include "runtime/families/softmax/canonical_powers.h"
#include "runtime/families/softmax/canonical_softmax.h"

namespace hone::canonical {
namespace {

using softmax_reference::Computation;
using softmax_reference::Line;

WeightPrecision weight_precision(const Computation& computation) {
  const bool is_reduced = computation.accumulator == DType::f32 && info(computation.result).size_bytes == 2;
  return is_reduced ? WeightPrecision::reduced : WeightPrecision::full;
}

/// A row whose largest product with the factor is that of `origin`.
template <class A>
struct RowState {
  A origin = 0, factor = 0, sum = 0;
  A by = 0;  ///< what results are made with: the reciprocal of the sum, or the logarithm relative to the origin
  bool is_nan = false;
  CanonicalPowers<A> weight{};

  RowState() = default;
  RowState(A of_origin, A of_factor, WeightPrecision precision)
      : origin(of_origin), factor(of_factor), is_nan(!std::isfinite(of_origin)) {
    if (!is_nan) weight = CanonicalPowers<A>(origin, factor, precision);
  }

  void set_sum(const Computation& computation, A of_row) {
    sum = of_row;
    by = computation.is_log ? logarithm(sum / weight(origin)) : 1 / sum;
  }
  A result(const Computation& computation, A x) const {
    if (is_nan) return std::numeric_limits<A>::quiet_NaN();
    if (computation.is_log) return std::fma(x, A(0.5), -(origin * A(0.5))) * factor - by;
    const A of_x = weight(x), quotient = of_x * by;
    if (info(computation.result).size_bytes < sizeof(A)) return quotient;
    return std::fma(std::fma(-quotient, sum, of_x), by, quotient);
  }
};

template <class A>
class Definition {
 public:
  Definition(const Computation& computation, double factor, std::span<const std::byte> pattern)
      : computation_(computation), factor_(static_cast<A>(factor)) {
    for (const long double value : reduce_reference::decode(computation.dtype, pattern))
      values_.push_back(static_cast<A>(value));
  }

  RowState<A> state_of(const Line& line) const {
    A heaviest = -std::numeric_limits<A>::infinity();
    for (std::int64_t i = 0; i < line.elements; ++i) {
      const A x = factor_ < 0 ? -element(line, i) : element(line, i);
      if (std::isnan(x) || x > heaviest || std::isnan(heaviest)) heaviest = std::isnan(heaviest) ? heaviest : x;
    }
    RowState<A> state(factor_ < 0 ? -heaviest : heaviest, factor_, weight_precision(computation_));
    if (state.is_nan) return state;
    // Each value of the pattern has one weight, however often it is in the row.
    std::vector<A> weights(values_.size(), A(-1));
    const auto weight = [&](std::int64_t i) {
      A& known = weights[place(line, i)];
      if (known < 0) known = state.weight(element(line, i));
      return known;
    };
    const std::int64_t each = chunk_elements(computation_.dtype);
    const auto add = [](A a, A b) { return a + b; };
    const auto of_chunk = [&](std::int64_t chunk) {
      std::vector<A> leaves;
      for (std::int64_t i = chunk * each; i < std::min((chunk + 1) * each, line.elements); ++i)
        leaves.push_back(weight(i));
      return fold_in_halves(std::move(leaves), -A(0), add);
    };
    const A sum = join_chunks(0, (line.elements + each - 1) / each, of_chunk, add);
    state.set_sum(computation_, sum);
    return state;
  }

  void result_of(const Line& line, std::int64_t i, const RowState<A>& state, std::byte* out) const {
    store(computation_.result, state.result(computation_, element(line, i)), out);
  }

 private:
  std::size_t place(const Line& line, std::int64_t i) const {
    const auto period = static_cast<std::int64_t>(values_.size());
    return static_cast<std::size_t>((line.in_first % period + i % period * (line.in_stride % period)) % period);
  }
  A element(const Line& line, std::int64_t i) const { return values_[place(line, i)]; }

  const Computation& computation_;
  A factor_;
  std::vector<A> values_;
};

template <class A>
std::string verify_in(const Computation& computation, double factor, std::span<const std::byte> pattern,
                      std::span<const ElementRange> parts, const std::function<Line(std::int64_t)>& line_of,
                      std::span<const std::byte> output) {
  const Definition<A> definition(computation, factor, pattern);
  const std::size_t bytes = info(computation.result).size_bytes;
  std::unordered_map<std::int64_t, RowState<A>> states;  // by the line's first element
  const std::byte* found = output.data();
  for (const ElementRange& part : parts)
    for (std::int64_t element = part.first; element < part.first + part.count; ++element, found += bytes) {
      const Line line = line_of(element);
      const auto [state, is_new] = states.try_emplace(line.in_first);
      if (is_new) state->second = definition.state_of(line);
      std::array<std::byte, sizeof(double)> expected{};
      definition.result_of(line, (element - line.out_first) / line.out_stride, state->second, expected.data());
      if (std::memcmp(expected.data(), found, bytes) == 0) continue;
      const auto value = [&](const std::byte* at) {
        return static_cast<double>(reduce_reference::decode(computation.result, {at, bytes}).front());
      };
      return fmt::format("element {} of the output: {:a}, but {:a} is the reproducible result", element, value(found),
                         value(expected.data()));
    }
  return "";
}

template <class A>
std::vector<std::byte> weights_in(const Computation& computation, A factor, A origin,
                                  std::span<const std::byte> elements) {
  const CanonicalPowers<A> weight_of(origin, factor, weight_precision(computation));
  std::vector<std::byte> bytes;
  for (const long double x : reduce_reference::decode(computation.dtype, elements)) {
    const A weight = weight_of(static_cast<A>(x));
    bytes.resize(bytes.size() + sizeof(A));
    std::memcpy(bytes.data() + bytes.size() - sizeof(A), &weight, sizeof(A));
  }
  return bytes;
}

template <class A>
std::vector<std::byte> shares_in(const Computation& computation, A factor, A origin, A sum,
                                 std::span<const std::byte> elements) {
  RowState<A> state(origin, factor, weight_precision(computation));
  state.set_sum(computation, sum);
  std::vector<std::byte> bytes;
  const std::size_t each = info(computation.result).size_bytes;
  for (const long double x : reduce_reference::decode(computation.dtype, elements)) {
    bytes.resize(bytes.size() + each);
    store(computation.result, state.result(computation, static_cast<A>(x)), bytes.data() + bytes.size() - each);
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> softmax_shares(const Computation& computation, double factor, double origin, double sum,
                                      std::span<const std::byte> elements) {
  if (computation.accumulator == DType::f64) return shares_in(computation, factor, origin, sum, elements);
  return shares_in(computation, static_cast<float>(factor), static_cast<float>(origin), static_cast<float>(sum),
                   elements);
}

std::vector<std::byte> softmax_weights(const Computation& computation, double factor, double origin,
                                       std::span<const std::byte> elements) {
  if (computation.accumulator == DType::f64) return weights_in(computation, factor, origin, elements);
  return weights_in(computation, static_cast<float>(factor), static_cast<float>(origin), elements);
}

std::string verify_softmax(const Computation& computation, double factor, std::span<const std::byte> pattern,
                           std::span<const ElementRange> parts, const std::function<Line(std::int64_t)>& line_of,
                           std::span<const std::byte> output) {
  return computation.accumulator == DType::f64
             ? verify_in<double>(computation, factor, pattern, parts, line_of, output)
             : verify_in<float>(computation, factor, pattern, parts, line_of, output);
}

}  // namespace hone::canonical
