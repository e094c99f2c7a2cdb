#include "runtime/families/combine_ranks/partials_verifier.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "runtime/families/combine_ranks/partial_layout.h"
#include "runtime/families/expectation.h"

namespace hone {
namespace {

using Wide = long double;
using reduce_reference::Expectation;

/// "special": one rank has no elements, one has a NaN, one an infinity.
constexpr std::array<std::string_view, 2> kKinds{"uniform", "special"};
constexpr Wide kNan = std::numeric_limits<Wide>::quiet_NaN();
constexpr Wide kRoundoff = 0x1p-52L;  ///< of double, twice

/// The partials of all ranks for one row.
struct RowPartials {
  const ReduceSpec& spec;
  std::vector<Wide> first, second;  ///< values; the second of operations with two
  std::vector<std::int64_t> indices, counts;

  bool ignores_nan() const { return spec.nan == NanPolicy::ignore; }
};

RowPartials row_of(const Problem& problem, const ReduceSpec& spec, const std::vector<std::byte>& bytes,
                   std::int64_t row) {
  const PartialLayout layout = PartialLayout::of(spec, problem.extents[1]);
  const auto value_bytes = static_cast<std::int64_t>(info(layout.value).size_bytes);
  RowPartials partials{.spec = spec, .first = {}, .second = {}, .indices = {}, .counts = {}};
  for (std::int64_t rank = 0; rank < problem.extents[0]; ++rank) {
    const std::byte* const block = bytes.data() + rank * layout.block_bytes;
    const auto value = [&](std::int64_t i) {
      const std::span<const std::byte> at(block + i * value_bytes, static_cast<std::size_t>(value_bytes));
      return reduce_reference::decode(layout.value, at).front();
    };
    const auto integer = [&](std::int64_t at) {
      std::int64_t number = 0;
      std::memcpy(&number, block + at, sizeof(number));
      return number;
    };
    partials.first.push_back(value(layout.values_per_row * row));
    if (layout.values_per_row == 2) partials.second.push_back(value(2 * row + 1));
    if (layout.has_index) partials.indices.push_back(integer(layout.index_at + row * 8));
    if (layout.has_count) partials.counts.push_back(integer(layout.count_at));
  }
  return partials;
}

/// The 64 bits of an accumulator, i64 or u64, as a number.
Wide number_of(std::uint64_t bits, DType accumulator) {
  return accumulator == DType::i64 ? static_cast<Wide>(static_cast<std::int64_t>(bits)) : static_cast<Wide>(bits);
}

Wide extreme_of(const RowPartials& row, const std::vector<Wide>& values, bool largest) {
  Wide found = values.front();
  for (const Wide value : values) {
    if (std::isnan(found)) found = row.ignores_nan() ? value : found;
    else if (std::isnan(value)) found = row.ignores_nan() ? found : value;
    else found = largest ? std::max(found, value) : std::min(found, value);
  }
  return found;
}

Expectation sum_of(const RowPartials& row, DType value) {
  if (!info(value).is_floating()) {
    std::uint64_t bits = 0;
    for (const Wide each : row.first)
      bits += each < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(each)) : static_cast<std::uint64_t>(each);
    return Expectation::exactly(number_of(bits, value));
  }
  Wide sum = 0, magnitude = 0;
  for (const Wide each : row.first) sum += each, magnitude += std::fabs(each);
  return Expectation::near(sum, magnitude * kRoundoff * static_cast<Wide>(row.first.size()), DType::f64);
}

Expectation product_of(const RowPartials& row, DType value) {
  if (!info(value).is_floating()) {
    std::uint64_t bits = 1;
    for (const Wide each : row.first)
      bits *= each < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(each)) : static_cast<std::uint64_t>(each);
    return Expectation::exactly(number_of(bits, value));
  }
  Wide product = 1;
  for (const Wide each : row.first) product *= each;
  return Expectation::near(product, std::fabs(product) * kRoundoff * static_cast<Wide>(row.first.size()), DType::f64);
}

/// Mean, or mean and variance, from sums over all ranks.
std::vector<Expectation> moments_of(const RowPartials& row, bool has_variance) {
  Wide count = 0, sum = 0, magnitude = 0;
  for (std::size_t r = 0; r < row.first.size(); ++r) {
    const auto elements = static_cast<Wide>(row.counts[r]);
    count += elements;
    if (has_variance && elements == 0) continue;
    sum += row.first[r] * (has_variance ? elements : 1);
    magnitude += std::fabs(row.first[r] * (has_variance ? elements : 1));
  }
  const Wide slack = 8 * kRoundoff * static_cast<Wide>(row.first.size());
  const Wide mean = count == 0 ? kNan : sum / count;
  std::vector<Expectation> expected{Expectation::near(mean, slack * magnitude / count, DType::f64)};
  if (!has_variance) return expected;
  Wide squares = 0;
  for (std::size_t r = 0; r < row.first.size(); ++r)
    if (row.counts[r] > 0)
      squares += static_cast<Wide>(row.counts[r]) * (row.second[r] + (row.first[r] - mean) * (row.first[r] - mean));
  expected.push_back(Expectation::near(count == 0 ? kNan : squares / count, slack * squares / count, DType::f64));
  return expected;
}

std::int64_t located(const RowPartials& row, bool largest) {
  std::int64_t before = 0, found = -1;
  Wide best = 0;
  for (std::size_t r = 0; r < row.first.size(); ++r) {
    const Wide value = row.first[r];
    const bool is_beyond = !std::isnan(best) && (std::isnan(value) || (largest ? value > best : value < best));
    if (row.indices[r] >= 0 && (found < 0 || is_beyond)) {
      best = value;
      found = before + row.indices[r];
    }
    before += row.counts[r];
  }
  return found;
}

Expectation logsumexp_of(const RowPartials& row) {
  Wide largest = -std::numeric_limits<Wide>::infinity(), sum = 0;
  for (const Wide value : row.first) largest = std::fmax(largest, value);
  for (const Wide value : row.first) sum += value == largest ? 1 : std::exp(value - largest);
  const Wide result = largest + std::log(sum);
  return Expectation::near(result, 16 * kRoundoff * (std::fabs(result) + static_cast<Wide>(row.first.size())),
                           DType::f64);
}

/// The root is correctly rounded, so its error is half of that of the sum.
Expectation root_of(const RowPartials& row, DType value) {
  if (!info(value).is_floating()) {
    std::uint64_t bits = 0;
    for (const Wide each : row.first) bits += static_cast<std::uint64_t>(static_cast<std::int64_t>(each));
    const Wide sum = number_of(bits, value);
    const Wide root = std::sqrt(sum);
    return Expectation::near(root, root * kRoundoff, DType::f64);
  }
  Wide sum = 0;
  for (const Wide each : row.first) sum += each;
  const Wide root = std::sqrt(sum);
  return Expectation::near(root, root * kRoundoff * static_cast<Wide>(row.first.size()), DType::f64);
}

std::vector<Expectation> expected_of(const RowPartials& row, DType value) {
  using enum ReduceOp;
  switch (row.spec.op) {
    case product: return {product_of(row, value)};
    case min: return {Expectation::exactly(extreme_of(row, row.first, false))};
    case max:
    case max_norm:
    case any: return {Expectation::exactly(extreme_of(row, row.first, true))};
    case all: return {Expectation::exactly(extreme_of(row, row.first, false))};
    case minmax:
      return {Expectation::exactly(extreme_of(row, row.first, false)),
              Expectation::exactly(extreme_of(row, row.second, true))};
    case range: {
      const Wide low = extreme_of(row, row.first, false), high = extreme_of(row, row.second, true);
      return {Expectation::near(high < low ? 0 : high - low, std::fabs(high - low) * kRoundoff, DType::f64)};
    }
    case argmin:
    case argmax: return {Expectation::exactly(static_cast<Wide>(located(row, row.spec.op == argmax)))};
    case mean: return moments_of(row, false);
    case mean_variance: return moments_of(row, true);
    case l2_norm: return {root_of(row, value)};
    case logsumexp: return {logsumexp_of(row)};
    default: return {sum_of(row, value)};
  }
}

}  // namespace

std::span<const std::string_view> PartialsVerifier::input_kinds(const Problem&) const { return kKinds; }

std::vector<std::byte> PartialsVerifier::input_pattern(const Problem& problem, int, std::string_view kind) const {
  const ReduceSpec spec = reduce_spec_of(problem);
  const PartialLayout layout = PartialLayout::of(spec, problem.extents[1]);
  const std::int64_t values = problem.extents[1] * layout.values_per_row;
  const bool is_special = kind == "special", is_minmax = divided(spec.op).local == ReduceOp::minmax;
  const bool is_moments = spec.op == ReduceOp::mean_variance;
  const bool are_squares = divided(spec.op).local == ReduceOp::sum_of_squares || is_moments;
  const bool may_wrap = !are_squares && spec.op != ReduceOp::mean;
  std::vector<std::byte> bytes(static_cast<std::size_t>(problem.extents[0] * layout.block_bytes));
  std::mt19937_64 random(problem.extents[0]);
  for (std::int64_t rank = 0; rank < problem.extents[0]; ++rank) {
    std::byte* const block = bytes.data() + rank * layout.block_bytes;
    const std::int64_t count = is_special && rank % 4 == 1 ? 0 : 1 + static_cast<std::int64_t>(random() % 1000);
    with_element_type(layout.value, [&]<class T>(T) {
      for (std::int64_t i = 0; i < values; ++i) {
        T value;
        if constexpr (std::is_integral_v<T>) {
          value = static_cast<T>(may_wrap ? random() : random() >> 20);
        } else {
          auto number = static_cast<float>(static_cast<double>(random() % 2000001) / 1e6 - 1);
          if (are_squares) number = std::fabs(number);
          if (is_special && !is_moments && rank % 4 == 2 && i % 3 == 0) number = std::numeric_limits<float>::infinity();
          if (is_special && rank % 4 == 3 && i % 2 == 1) number = std::numeric_limits<float>::quiet_NaN();
          value = static_cast<T>(number);
        }
        std::memcpy(block + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
      }
      // The smaller one of a pair goes first.
      auto* const pairs = reinterpret_cast<T*>(block);
      if constexpr (std::is_arithmetic_v<T>)
        for (std::int64_t i = 0; is_minmax && i + 1 < values; i += 2)
          if (pairs[i + 1] < pairs[i]) std::swap(pairs[i], pairs[i + 1]);
    });
    for (std::int64_t row = 0; layout.has_index && row < problem.extents[1]; ++row) {
      const auto index =
          count == 0 ? std::int64_t{-1} : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
      std::memcpy(block + layout.index_at + row * 8, &index, sizeof(index));
    }
    if (layout.has_count) std::memcpy(block + layout.count_at, &count, sizeof(count));
  }
  return bytes;
}

std::string PartialsVerifier::verify(const Problem& problem, const Candidate&, ArrayBytes patterns,
                                     ArrayBytes outputs) const {
  const ReduceSpec spec = reduce_spec_of(problem);
  const PartialLayout layout = PartialLayout::of(spec, problem.extents[1]);
  const std::vector<Wide> found = reduce_reference::decode(spec.result_dtype(), outputs[0]);
  std::size_t at = 0;
  for (std::int64_t row = 0; row < problem.extents[1]; ++row)
    for (const Expectation& expected : expected_of(row_of(problem, spec, patterns[0], row), layout.value))
      if (const std::string wrong = expected.compare(spec.result_dtype(), found[at++]); !wrong.empty())
        return fmt::format("row {}: {}", row, wrong);
  return "";
}

}  // namespace hone
