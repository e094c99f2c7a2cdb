#include "runtime/families/reduce/reduce_reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "runtime/families/expectation.h"
#include "runtime/families/reduce/canonical_tree.h"
#include "runtime/families/reduce/reference_sums.h"

namespace hone::reduce_reference {
namespace {

constexpr Wide kInfinity = std::numeric_limits<Wide>::infinity();
constexpr Wide kNan = std::numeric_limits<Wide>::quiet_NaN();

/// Modulo 2^64.
std::uint64_t wrapped(Wide integer) {
  const auto magnitude = static_cast<std::uint64_t>(std::fabs(integer));
  return integer < 0 ? 0 - magnitude : magnitude;
}

/// An integer accumulator's value: i64 or u64.
Wide value_of(std::uint64_t bits, DType accumulator) {
  return accumulator == DType::i64 ? static_cast<Wide>(static_cast<std::int64_t>(bits)) : static_cast<Wide>(bits);
}

/// A summand: of numbers, or of integers modulo 2^64.
template <class Number>
Number term_of(ReduceOp op, Number x, Number magnitude, Number other) {
  switch (op) {
    case ReduceOp::sum_of_squares:
    case ReduceOp::l2_norm: return x * x;
    case ReduceOp::l1_norm: return magnitude;
    case ReduceOp::dot: return x * other;
    default: return x;
  }
}

Sums sum_of_terms(const Inputs& inputs) {
  return sum_all(inputs, [&](std::size_t i) {
    const Wide x = inputs.first[i];
    return term_of(inputs.spec.op, x, std::fabs(x), inputs.second.empty() ? 0 : inputs.second[i]);
  });
}

/// All elements combined modulo 2^64, from `identity` on.
template <class Term, class Combine>
std::uint64_t combine_wrapped(const Inputs& inputs, std::uint64_t identity, Term term, Combine combine) {
  const Repetition& repetition = inputs.repetition;
  std::uint64_t period = identity, result = identity;
  for (std::size_t i = 0; i < repetition.period; ++i) {
    if (i == repetition.rest) result = period;
    period = combine(period, term(i));
  }
  if (repetition.rest == repetition.period) result = period;
  for (auto times = static_cast<std::uint64_t>(repetition.whole); times > 0; times /= 2) {
    if (times % 2 == 1) result = combine(result, period);
    period = combine(period, period);
  }
  return result;
}

std::uint64_t wrapped_sum(const Inputs& inputs) {
  const auto term = [&](std::size_t i) {
    const Wide x = inputs.first[i];
    return term_of(inputs.spec.op, wrapped(x), wrapped(std::fabs(x)),
                   inputs.second.empty() ? 0 : wrapped(inputs.second[i]));
  };
  return combine_wrapped(inputs, 0, term, std::plus<>());
}

/// A result and how far it may be off before it is stored.
struct Approximate {
  Wide value;
  Wide error = 0;
};

Wide gamma(Wide roundings, Wide unit) { return roundings * unit / (1 - roundings * unit); }

/// Returns true if no partial sum is rounded. That is certain if Σ|x| stays below 2^p. Random signs keep the sums of
/// small integers far below: 8 standard deviations above the whole sum are exceeded with a probability of e^-32.
bool sums_exactly(const Sums& sums, Wide unit) {
  if (!sums.integral) return false;
  if (sums.magnitude * unit <= 1) return true;
  return sums.largest <= 16 && (std::fabs(sums.value) + 8 * std::sqrt(sums.squares)) * unit <= 1;
}

/// Σ in a floating accumulator. Conversions and a multiplication round each summand before it is added.
Approximate floating_sum(const Inputs& inputs, const Sums& sums) {
  const Wide unit = inputs.unit();
  if (!std::isfinite(sums.value) || sums_exactly(sums, unit)) return {sums.value};
  const ReduceOp op = inputs.spec.op;
  const bool multiplies = op == ReduceOp::sum_of_squares || op == ReduceOp::l2_norm || op == ReduceOp::dot;
  const int own = multiplies ? 2 * inputs.conversion_roundings() + 1 : inputs.conversion_roundings();
  const std::int64_t additions = std::min(inputs.chain, sums.count - 1);
  return {sums.value, gamma(static_cast<Wide>(additions + own), unit) * sums.magnitude};
}

/// The sum over the count: the count and the quotient are rounded, and perhaps the reciprocal.
Expectation expected_mean(const Inputs& inputs) {
  const Sums sums = sum_of_terms(inputs);
  if (sums.count == 0) return Expectation::exactly(kNan);
  Approximate sum = inputs.accumulates_integers()
                        ? Approximate{value_of(wrapped_sum(inputs), inputs.spec.accumulator_dtype())}
                        : floating_sum(inputs, sums);
  const auto count = static_cast<Wide>(sums.count);
  const Wide mean = sum.value / count;
  return Expectation::near(mean, sum.error / count + 3 * inputs.unit() * std::fabs(mean), inputs.arithmetic());
}

/// √ of a sum of squares that may be off: two units for a square root that need not be rounded correctly.
Expectation expected_l2_norm(const Inputs& inputs, const Approximate& squares) {
  if (!std::isfinite(squares.value)) return Expectation::exactly(std::sqrt(squares.value));
  const Wide slack = 2 * inputs.unit();
  return Expectation::between(std::sqrt(std::max<Wide>(0, squares.value - squares.error)) * (1 - slack),
                              std::sqrt(squares.value + squares.error) * (1 + slack), inputs.arithmetic());
}

Expectation expected_sum(const Inputs& inputs) {
  const DType accumulator = inputs.spec.accumulator_dtype();
  if (inputs.accumulates_integers()) {
    const std::uint64_t sum = wrapped_sum(inputs);
    if (inputs.spec.op == ReduceOp::l2_norm) return expected_l2_norm(inputs, {value_of(sum, accumulator)});
    return Expectation::exactly(value_of(sum, accumulator));
  }
  const Approximate sum = floating_sum(inputs, sum_of_terms(inputs));
  if (inputs.spec.op == ReduceOp::l2_norm) return expected_l2_norm(inputs, sum);
  return Expectation::near(sum.value, sum.error, accumulator);
}

/// Mean and population variance by the merging of Chan, Golub and LeVeque (Algorithms for computing the sample
/// variance, 1983), in which variance is off by about chain · u · κ relative, κ² = Σy² ÷ Σ(x − mean)², where y are the
/// numbers that are summed: differences of elements from pivots, which are elements as well. The root of the mean of
/// y² is at most twice the largest deviation; and where elements are small themselves, pivots near their mean are no
/// larger, so that it is also at most that of x².
///
/// One merge of groups no more unequal than their elements allow rounds the mean by up to 6u · mean|y|, the merges
/// above average that. It adds δ² · w, w = n₁n₂ ÷ n ≤ min(n₁, n₂), to the sum S of squared deviations, where δ, the
/// difference of the two means, is off by the error e ≤ 6 chain · u · mean|y| of either: in all Σ w(2δ · 2e + 4e²). By
/// Cauchy and Schwarz with Σ w δ² ≤ S and Σ w e² ≤ log₂(n) · (6 chain · u)² · Σy² that is the second line; the
/// additions of nonnegative S and the formula itself are the first. Elements that the accumulator rounds are off by
/// u · |x| before any of that.
std::array<Expectation, 2> expected_mean_variance(const Inputs& inputs) {
  const Sums sums = sum_all(inputs, [&](std::size_t i) { return inputs.first[i]; });
  if (sums.count == 0) return {Expectation::exactly(kNan), Expectation::exactly(kNan)};
  const auto count = static_cast<Wide>(sums.count);
  // Merging turns an infinite mean into NaN with the next infinity.
  if (!std::isfinite(sums.value)) return {Expectation::exactly(sums.value).or_nan(), Expectation::exactly(kNan)};

  // The sum's own rounding has moved the mean by an amount that is seen in the deviations from it.
  const Wide pivot = sums.value / count;
  const Wide offset = sum_all(inputs, [&](std::size_t i) { return inputs.first[i] - pivot; }).value / count;
  const Sums deviations = sum_all(inputs, [&](std::size_t i) {
    const Wide deviation = (inputs.first[i] - pivot) - offset;
    return deviation * deviation;
  });
  const Wide mean = pivot + offset;
  const Wide variance = deviations.value / count;
  const auto merges = static_cast<Wide>(std::min(inputs.chain, sums.count));
  const Wide unit = inputs.unit();
  const Wide levels = std::log2(count) + 1;
  const Wide farthest = 2 * std::sqrt(deviations.largest);
  const Wide root_mean_square = std::sqrt(sums.squares / count);
  const Wide of_conversion = inputs.conversion_roundings() * unit * root_mean_square;
  const Wide of_means = 6 * merges * unit * std::sqrt(levels) * std::min(root_mean_square, farthest) + of_conversion;
  const Wide allowed = gamma(2 * merges + 8, unit) * variance +  //
                       4 * of_means * std::sqrt(variance) + 4 * of_means * of_means;
  const Wide of_mean =
      6 * merges * unit * std::min(sums.magnitude / count, farthest) + of_conversion + 3 * unit * std::fabs(mean);
  return {Expectation::near(mean, of_mean, inputs.arithmetic()),
          Expectation::between(std::max<Wide>(0, variance - allowed), variance + allowed, inputs.arithmetic())};
}

struct Extreme {
  Wide value;
  std::int64_t index = -1;  ///< the lowest
};

/// The element with the largest key. A NaN beats everything.
Extreme extreme(const Inputs& inputs, Wide identity, Wide (*key)(Wide)) {
  Extreme best{identity};
  for (std::size_t i = 0; i < inputs.repetition.period; ++i) {
    if (inputs.is_absent(i)) continue;
    const Wide x = inputs.first[i];
    if (std::isnan(x)) return {x, static_cast<std::int64_t>(i)};
    if (best.index < 0 || key(x) > key(best.value)) best = {x, static_cast<std::int64_t>(i)};
  }
  return best;
}

Extreme smallest(const Inputs& inputs) {
  return extreme(inputs, highest_value(inputs.spec.dtype), [](Wide x) { return -x; });
}
Extreme largest(const Inputs& inputs) {
  return extreme(inputs, lowest_value(inputs.spec.dtype), [](Wide x) { return x; });
}

/// m + log Σ exp(x − m), m the largest x. exp and log are off by up to 4 units in the last place (8u). Each combination
/// rounds, multiplies by an exponential and adds; the arguments of an element's exponentials add up to x − m and are
/// rounded, in base 2 also by the constant, so 4u |x − m| weighted by what the element contributes. Subtracting m and
/// adding it back rounds |m| and the result. What is subtracted may be up to log 1024 below m: a logarithm up to 7
/// larger is off by up to 28u more, within the 29u at least that two elements are allowed.
Expectation expected_logsumexp(const Inputs& inputs) {
  const Extreme most = largest(inputs);
  if (most.index < 0) return Expectation::exactly(-kInfinity);
  if (!std::isfinite(most.value)) return Expectation::exactly(most.value);
  const Wide heaviest = most.value;

  // exp of a double is precise enough for the accumulators that are floats, and ten times as fast.
  const bool narrow = inputs.arithmetic() == DType::f32;
  std::vector<Wide> exponentials(inputs.repetition.period);
  for (std::size_t i = 0; i < exponentials.size(); ++i) {
    const Wide distance = inputs.first[i] - heaviest;
    exponentials[i] = narrow ? std::exp(static_cast<double>(distance)) : std::exp(distance);
  }
  const Sums sums = sum_all(inputs, [&](std::size_t i) { return exponentials[i]; });
  const Sums weighted = sum_all(
      inputs, [&](std::size_t i) { return exponentials[i] == 0 ? 0 : (heaviest - inputs.first[i]) * exponentials[i]; });
  const Wide logarithm = std::log(sums.value);
  const Wide value = heaviest + logarithm;
  const auto combinations = static_cast<Wide>(std::min(inputs.chain, sums.count));
  const Wide of_sum = gamma(combinations * 10 + 9 + 4 * weighted.value / sums.value, inputs.unit());
  return Expectation::near(
      value, of_sum + inputs.unit() * (8 * std::fabs(logarithm) + 4 * std::fabs(heaviest) + std::fabs(value)),
      inputs.arithmetic());
}

bool is_power_of_two(Wide x) {
  int exponent = 0;
  return std::fabs(std::frexp(x, &exponent)) == 0.5L;
}

/// γ(m) relative, m the factors that are no powers of two: multiplying by those is exact.
Expectation expected_product(const Inputs& inputs) {
  const DType accumulator = inputs.spec.accumulator_dtype();
  if (inputs.accumulates_integers()) {
    const auto factor = [&](std::size_t i) { return wrapped(inputs.first[i]); };
    return Expectation::exactly(value_of(combine_wrapped(inputs, 1, factor, std::multiplies<>()), accumulator));
  }
  const Repetition& repetition = inputs.repetition;
  Wide period = 1;
  Wide product = 1;
  std::int64_t rounded = 0;
  for (std::size_t i = 0; i < repetition.period; ++i) {
    if (i == repetition.rest) product = period;
    if (inputs.is_absent(i)) continue;
    period *= inputs.first[i];
    if (std::isfinite(inputs.first[i]) && inputs.first[i] != 0 && !is_power_of_two(inputs.first[i]))
      rounded += repetition.whole + (i < repetition.rest ? 1 : 0);
  }
  if (repetition.whole > 0) product *= std::pow(period, static_cast<Wide>(repetition.whole));
  if (!std::isfinite(product) || product == 0) return Expectation::exactly(product);
  const auto roundings = static_cast<Wide>(rounded * (1 + inputs.conversion_roundings()));
  return Expectation::near(product, gamma(roundings, inputs.unit()) * std::fabs(product), accumulator);
}

/// One subtraction: rounded once, to the accumulator.
Expectation expected_range(const Inputs& inputs) {
  const Wide low = smallest(inputs).value, high = largest(inputs).value;
  if (high < low) return Expectation::exactly(0);
  const Wide range = high - low;
  if (!info(inputs.spec.dtype).is_floating() || !std::isfinite(range)) return Expectation::exactly(range);
  return Expectation::near(range, inputs.unit() * range, inputs.spec.accumulator_dtype());
}

/// Their value counts the elements that are not zero, of which NaN is one.
Sums sum_of_truths(const Inputs& inputs) {
  return sum_all(inputs, [&](std::size_t i) { return Wide(inputs.first[i] != 0 ? 1 : 0); });
}

std::array<Expectation, 2> expectations(const Inputs& inputs) {
  using E = Expectation;
  switch (inputs.spec.op) {
    case ReduceOp::min: return {E::exactly(smallest(inputs).value)};
    case ReduceOp::max: return {E::exactly(largest(inputs).value)};
    case ReduceOp::minmax: return {E::exactly(smallest(inputs).value), E::exactly(largest(inputs).value)};
    case ReduceOp::range: return {expected_range(inputs)};
    case ReduceOp::argmin: return {E::exactly(static_cast<Wide>(smallest(inputs).index))};
    case ReduceOp::argmax: return {E::exactly(static_cast<Wide>(largest(inputs).index))};
    case ReduceOp::max_norm:
      return {E::exactly(std::fabs(extreme(inputs, 0, [](Wide x) { return std::fabs(x); }).value))};
    case ReduceOp::any: return {E::exactly(sum_of_truths(inputs).value > 0 ? 1 : 0)};
    case ReduceOp::all: {
      const Sums truths = sum_of_truths(inputs);
      return {E::exactly(truths.value == static_cast<Wide>(truths.count) ? 1 : 0)};
    }
    case ReduceOp::count_nonzero: return {E::exactly(sum_of_truths(inputs).value)};
    case ReduceOp::product: return {expected_product(inputs)};
    case ReduceOp::mean: return {expected_mean(inputs)};
    case ReduceOp::mean_variance: return expected_mean_variance(inputs);
    case ReduceOp::logsumexp: return {expected_logsumexp(inputs)};
    default: return {expected_sum(inputs)};
  }
}

/// Returns the name of a result, if there are two.
std::string_view label(ReduceOp op, int output) {
  if (op == ReduceOp::minmax) return output == 0 ? "minimum: " : "maximum: ";
  if (op == ReduceOp::mean_variance) return output == 0 ? "mean: " : "variance: ";
  return "";
}

/// As C++ writes it: "0x1.8p+1".
std::string hex(DType dtype, std::span<const std::byte> bytes) {
  return fmt::format("{:a}", static_cast<double>(decode(dtype, bytes).front()));
}

/// Reproducible results are right in every bit, or wrong.
std::string compare_bits(const ReduceSpec& spec, std::int64_t n, ArrayBytes patterns,
                         std::span<const std::byte> output) {
  const DType result = spec.result_dtype();
  const std::size_t bytes = info(result).size_bytes;
  const auto sequence = [&](const std::vector<std::byte>& pattern) {
    return canonical::Sequence{
        .bytes = pattern.data(),
        .period = static_cast<std::int64_t>(pattern.size() / info(spec.dtype).size_bytes)};
  };
  const int outputs = info(spec.op).outputs;
  std::vector<std::byte> expected(static_cast<std::size_t>(outputs) * bytes);
  canonical::reduce(spec, sequence(patterns.front()), sequence(patterns.back()), n, expected.data());
  for (int i = 0; i < outputs; ++i) {
    const auto right = std::span(expected).subspan(bytes * static_cast<std::size_t>(i), bytes);
    const auto found = output.subspan(bytes * static_cast<std::size_t>(i), bytes);
    if (!std::ranges::equal(right, found))
      return fmt::format("{}expected {} in every bit, found {}", label(spec.op, i), hex(result, right),
                         hex(result, found));
  }
  return "";
}

}  // namespace

std::string verify(const ReduceSpec& spec, std::int64_t n, std::int64_t chain, ArrayBytes patterns,
                   std::span<const std::byte> output) {
  if (spec.is_reproducible()) return compare_bits(spec, n, patterns, output);
  std::vector<Wide> first = decode(spec.dtype, patterns[0]);
  std::vector<Wide> second = info(spec.op).inputs == 2 ? decode(spec.dtype, patterns[1]) : std::vector<Wide>{};
  const Repetition repetition(n, first.size());
  const Inputs inputs{spec, chain, std::move(first), std::move(second), repetition};

  const DType result = spec.result_dtype();
  const std::vector<Wide> found = decode(result, output);
  const std::array<Expectation, 2> expected = expectations(inputs);
  for (int i = 0; i < info(spec.op).outputs; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string fault = expected[at].compare(result, found.at(at));
    if (!fault.empty()) return fmt::format("{}{}", label(spec.op, i), fault);
  }
  return "";
}

}  // namespace hone::reduce_reference
