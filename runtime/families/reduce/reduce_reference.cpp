#include "runtime/families/reduce/reduce_reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "runtime/families/expectation.h"
#include "runtime/families/reduce/canonical_tree.h"

namespace hone::reduce_reference {
namespace {

using Wide = long double;

constexpr Wide kInfinity = std::numeric_limits<Wide>::infinity();
constexpr Wide kNan = std::numeric_limits<Wide>::quiet_NaN();

/// The pattern repeated to n elements: `whole` times all of it, then its first `rest` elements.
struct Repetition {
  std::int64_t whole = 0;
  std::size_t rest = 0;
  std::size_t period = 0;

  Repetition(std::int64_t n, std::size_t length)
      : whole(length == 0 ? 0 : n / static_cast<std::int64_t>(length)),
        rest(length == 0 ? 0 : static_cast<std::size_t>(n % static_cast<std::int64_t>(length))),
        period(whole == 0 ? rest : length) {}
};

/// What a call reads, decoded.
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

/// Of numbers below 2^62; larger ones are too large to be summed exactly.
bool is_integer(Wide x) { return std::fabs(x) < 0x1p62 && static_cast<Wide>(static_cast<std::int64_t>(x)) == x; }

/// Sums over some elements.
struct Sums {
  Wide value = 0;
  Wide magnitude = 0;  ///< of absolute values
  Wide squares = 0;
  Wide largest = 0;    ///< absolute value
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

/// Modulo 2^64.
std::uint64_t wrapped(Wide integer) {
  const auto magnitude = static_cast<std::uint64_t>(std::fabs(integer));
  return integer < 0 ? 0 - magnitude : magnitude;
}

bool is_signed(DType dtype) { return info(dtype).kind == DTypeKind::signed_integer; }

/// An integer accumulator's value.
Wide value_of(std::uint64_t bits, DType accumulator) {
  return is_signed(accumulator) ? static_cast<Wide>(static_cast<std::int64_t>(bits)) : static_cast<Wide>(bits);
}

Wide term_of(const Inputs& inputs, std::size_t i) {
  const Wide x = inputs.first[i];
  switch (inputs.spec.op) {
    case ReduceOp::sum_of_squares:
    case ReduceOp::l2_norm: return x * x;
    case ReduceOp::l1_norm: return std::fabs(x);
    case ReduceOp::dot: return x * inputs.second[i];
    default: return x;
  }
}

std::uint64_t wrapped_term_of(const Inputs& inputs, std::size_t i) {
  const std::uint64_t x = wrapped(inputs.first[i]);
  switch (inputs.spec.op) {
    case ReduceOp::sum_of_squares:
    case ReduceOp::l2_norm: return x * x;
    case ReduceOp::l1_norm: return wrapped(std::fabs(inputs.first[i]));
    case ReduceOp::dot: return x * wrapped(inputs.second[i]);
    default: return x;
  }
}

std::uint64_t wrapped_sum(const Inputs& inputs) {
  const Repetition& repetition = inputs.repetition;
  std::uint64_t period = 0;
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < repetition.period; ++i) {
    if (i == repetition.rest) rest = period;
    period += wrapped_term_of(inputs, i);
  }
  if (repetition.rest == repetition.period) rest = period;
  return static_cast<std::uint64_t>(repetition.whole) * period + rest;
}

/// A result and how far it may be off before it is stored.
struct Approximate {
  Wide value;
  Wide error = 0;
};

Wide gamma(Wide roundings, Wide unit) { return roundings * unit / (1 - roundings * unit); }

/// Whether no partial sum is rounded. Certain if Σ|x| stays below 2^p. Random signs keep the sums of small integers far
/// below: 8 standard deviations above the whole sum are exceeded with a probability of e^-32.
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
  const Sums sums = sum_all(inputs, [&](std::size_t i) { return term_of(inputs, i); });
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
    return Expectation::wrapped(sum, accumulator);
  }
  const Approximate sum = floating_sum(inputs, sum_all(inputs, [&](std::size_t i) { return term_of(inputs, i); }));
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

  // What the sum's own rounding has moved the mean by is seen in the deviations from it.
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
  const Wide of_means =
      6 * merges * unit * std::sqrt(levels) * std::min(root_mean_square, farthest) + of_conversion;
  const Wide allowed = gamma(2 * merges + 8, unit) * variance +  //
                       4 * of_means * std::sqrt(variance) + 4 * of_means * of_means;
  const Wide of_mean = 6 * merges * unit * std::min(sums.magnitude / count, farthest) + of_conversion +
                       3 * unit * std::fabs(mean);
  return {Expectation::near(mean, of_mean, inputs.arithmetic()),
          Expectation::between(std::max<Wide>(0, variance - allowed), variance + allowed, inputs.arithmetic())};
}

/// m + log Σ exp(x − m), m the largest x. exp and log are off by up to 4 units in the last place (8u). Each combination
/// rounds, multiplies by an exponential and adds; the arguments of an element's exponentials add up to x − m and are
/// rounded, in base 2 also by the constant, so 4u |x − m| weighted by what the element contributes. Subtracting m and
/// adding it back rounds |m| and the result. What is subtracted may be up to log 1024 below m: a logarithm up to 7 larger
/// is off by up to 28u more, within the 29u at least that two elements are allowed.
Expectation expected_logsumexp(const Inputs& inputs) {
  Wide largest = -kInfinity;
  for (std::size_t i = 0; i < inputs.repetition.period; ++i) {
    if (inputs.is_absent(i)) continue;
    if (std::isnan(inputs.first[i])) return Expectation::exactly(kNan);
    largest = std::max(largest, inputs.first[i]);
  }
  if (std::isinf(largest)) return Expectation::exactly(largest);

  // exp of a double is precise enough for the accumulators that are floats, and ten times as fast.
  const bool narrow = inputs.arithmetic() == DType::f32;
  std::vector<Wide> exponentials(inputs.repetition.period);
  for (std::size_t i = 0; i < exponentials.size(); ++i) {
    const Wide distance = inputs.first[i] - largest;
    exponentials[i] = narrow ? std::exp(static_cast<double>(distance)) : std::exp(distance);
  }
  const Sums sums = sum_all(inputs, [&](std::size_t i) { return exponentials[i]; });
  const Sums weighted = sum_all(inputs, [&](std::size_t i) {
    return exponentials[i] == 0 ? 0 : (largest - inputs.first[i]) * exponentials[i];
  });
  const Wide logarithm = std::log(sums.value);
  const Wide value = largest + logarithm;
  const auto combinations = static_cast<Wide>(std::min(inputs.chain, sums.count));
  const Wide of_sum = gamma(combinations * 10 + 9 + 4 * weighted.value / sums.value, inputs.unit());
  return Expectation::near(
      value, of_sum + inputs.unit() * (8 * std::fabs(logarithm) + 4 * std::fabs(largest) + std::fabs(value)),
      inputs.arithmetic());
}

bool is_power_of_two(Wide x) {
  int exponent = 0;
  const Wide significand = std::fabs(std::frexp(x, &exponent));
  return significand == 0.5L;
}

/// Exact modulo 2^64.
std::uint64_t wrapped_product(const Inputs& inputs) {
  const Repetition& repetition = inputs.repetition;
  std::uint64_t period = 1;
  std::uint64_t product = 1;
  for (std::size_t i = 0; i < repetition.period; ++i) {
    if (i == repetition.rest) product = period;
    period *= wrapped(inputs.first[i]);
  }
  for (auto times = static_cast<std::uint64_t>(repetition.whole); times > 0; times /= 2) {
    if (times % 2 == 1) product *= period;
    period *= period;
  }
  return product;
}

/// γ(m) relative, m the factors that are no powers of two: multiplying by those is exact.
Expectation expected_product(const Inputs& inputs) {
  const DType accumulator = inputs.spec.accumulator_dtype();
  if (inputs.accumulates_integers()) return Expectation::wrapped(wrapped_product(inputs), accumulator);
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

struct Extreme {
  Wide value;
  std::int64_t index = -1;  ///< the lowest
};

/// A NaN beats everything. `sign` −1 turns the smallest into the largest.
Extreme extreme(const Inputs& inputs, Wide sign, Wide identity) {
  Extreme best{identity};
  for (std::size_t i = 0; i < inputs.repetition.period; ++i) {
    if (inputs.is_absent(i)) continue;
    const Wide x = inputs.first[i];
    if (std::isnan(x)) return {x, static_cast<std::int64_t>(i)};
    if (best.index < 0 || sign * x > sign * best.value) best = {x, static_cast<std::int64_t>(i)};
  }
  return best;
}

Extreme smallest(const Inputs& inputs) { return extreme(inputs, -1, highest_value(inputs.spec.dtype)); }
Extreme largest(const Inputs& inputs) { return extreme(inputs, 1, lowest_value(inputs.spec.dtype)); }

Expectation expected_max_norm(const Inputs& inputs) {
  Wide norm = 0;
  for (std::size_t i = 0; i < inputs.repetition.period; ++i) {
    if (inputs.is_absent(i)) continue;
    const Wide x = inputs.first[i];
    if (std::isnan(x)) return Expectation::exactly(x);
    norm = std::max(norm, std::fabs(x));
  }
  return Expectation::exactly(norm);
}

/// One subtraction: rounded once, to the accumulator.
Expectation expected_range(const Inputs& inputs) {
  const Wide low = smallest(inputs).value, high = largest(inputs).value;
  if (high < low) return Expectation::exactly(0);
  const Wide range = high - low;
  if (!info(inputs.spec.dtype).is_floating() || !std::isfinite(range)) return Expectation::exactly(range);
  return Expectation::near(range, inputs.unit() * range, inputs.spec.accumulator_dtype());
}

/// How many elements are not zero; NaN is none of the zeros.
std::int64_t nonzeros(const Inputs& inputs) {
  return static_cast<std::int64_t>(
      sum_all(inputs, [&](std::size_t i) { return Wide(inputs.first[i] != 0 ? 1 : 0); }).value);
}

std::int64_t present(const Inputs& inputs) {
  return sum_all(inputs, [](std::size_t) { return Wide{0}; }).count;
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
    case ReduceOp::max_norm: return {expected_max_norm(inputs)};
    case ReduceOp::any: return {E::exactly(nonzeros(inputs) > 0 ? 1 : 0)};
    case ReduceOp::all: return {E::exactly(nonzeros(inputs) == present(inputs) ? 1 : 0)};
    case ReduceOp::count_nonzero: return {E::exactly(static_cast<Wide>(nonzeros(inputs)))};
    case ReduceOp::product: return {expected_product(inputs)};
    case ReduceOp::mean: return {expected_mean(inputs)};
    case ReduceOp::mean_variance: return expected_mean_variance(inputs);
    case ReduceOp::logsumexp: return {expected_logsumexp(inputs)};
    default: return {expected_sum(inputs)};
  }
}

/// What a value of two is called.
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
std::string compare_bits(const ReduceSpec& spec, std::int64_t n, std::span<const std::vector<std::byte>> patterns,
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

std::string verify(const ReduceSpec& spec, std::int64_t n, std::int64_t chain,
                   std::span<const std::vector<std::byte>> patterns, std::span<const std::byte> output) {
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

std::string verify_each(const ReduceSpec& spec, std::int64_t chain, std::span<const std::byte> pattern,
                        std::span<const ElementRange> results, const std::function<Line(std::int64_t)>& line_of,
                        std::span<const std::byte> output) {
  const std::size_t bytes = info(spec.dtype).size_bytes;
  const auto outputs = static_cast<std::size_t>(info(spec.op).outputs);
  const std::size_t result_bytes = info(spec.result_dtype()).size_bytes * outputs;
  const auto period = static_cast<std::int64_t>(pattern.size() / bytes);
  std::vector<std::vector<std::byte>> elements(1);
  for (const ElementRange& part : results) {
    for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
      const Line line = line_of(i);
      // As many as differ from those before: the pattern of this result, which begins where the result does.
      elements[0].resize(static_cast<std::size_t>(std::min(line.elements, period)) * bytes);
      std::int64_t at = period == 0 ? 0 : line.first % period;
      for (std::size_t to = 0; to < elements[0].size(); to += bytes) {
        std::memcpy(elements[0].data() + to, pattern.data() + static_cast<std::size_t>(at) * bytes, bytes);
        at = (at + line.stride) % period;
      }
      const std::string fault = verify(spec, line.elements, chain, elements, output.first(result_bytes));
      if (!fault.empty())
        return fmt::format("result {} of the {} elements from {} on: {}", i, line.elements, line.first, fault);
      output = output.subspan(result_bytes);
    }
  }
  return "";
}

}  // namespace hone::reduce_reference
