#include "runtime/families/expectation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "runtime/families/counts.h"

namespace hone::reduce_reference {
namespace {

using Wide = long double;

static_assert(std::numeric_limits<Wide>::digits >= 64, "the reference holds 64-bit integers in a long double");

struct Limits {
  int min_exponent;  ///< the smallest normal number is 2 to one less
  Wide lowest, max;
};

Limits limits_of(DType dtype) {
  return with_element_type(dtype, []<class T>(T) -> Limits {
    using Of = std::numeric_limits<T>;
    return {Of::min_exponent, number_of<Wide>(Of::lowest()), number_of<Wide>(Of::max())};
  });
}

/// The nearest value of a floating dtype, ties to even; infinity where that is too large, also for dtypes without.
Wide rounded(DType dtype, Wide value) {
  if (dtype == DType::f32) return static_cast<float>(value);
  if (dtype == DType::f64) return static_cast<double>(value);
  if (!std::isfinite(value) || value == 0) return value;
  const Limits limits = limits_of(dtype);
  int exponent = 0;
  std::frexp(value, &exponent);
  const int last_place = std::max(exponent, limits.min_exponent) - info(dtype).digits;
  const Wide nearest = std::ldexp(std::nearbyint(std::ldexp(value, -last_place)), last_place);
  return std::fabs(nearest) <= limits.max ? nearest : std::copysign(Wide{INFINITY}, value);
}

std::string spell(DType dtype, Wide value) {
  switch (info(dtype).kind) {
    case DTypeKind::floating:
      return dtype == DType::f64 ? fmt::format("{}", static_cast<double>(value))
                                 : fmt::format("{}", static_cast<float>(value));
    case DTypeKind::signed_integer: return fmt::format("{}", static_cast<std::int64_t>(value));
    default: return fmt::format("{}", static_cast<std::uint64_t>(value));
  }
}

}  // namespace

std::vector<long double> decode(DType dtype, std::span<const std::byte> bytes) {
  return with_element_type(dtype, [&]<class T>(T) {
    std::vector<Wide> values(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        values[i] = bytes[i] != std::byte{0} ? 1 : 0;
      } else {
        T value;
        std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
        values[i] = number_of<Wide>(value);
      }
    }
    return values;
  });
}

long double highest_value(DType dtype) { return info(dtype).is_floating() ? Wide{INFINITY} : limits_of(dtype).max; }
long double lowest_value(DType dtype) { return info(dtype).is_floating() ? -Wide{INFINITY} : limits_of(dtype).lowest; }

Expectation Expectation::exactly(long double value) { return {value, value, value}; }

Expectation Expectation::near(long double value, long double error, DType arithmetic) {
  if (!std::isfinite(value)) return exactly(value);
  return {value, rounded(arithmetic, value - error), rounded(arithmetic, value + error)};
}

Expectation Expectation::between(long double lowest, long double highest, DType arithmetic) {
  return {lowest + (highest - lowest) / 2, rounded(arithmetic, lowest), rounded(arithmetic, highest)};
}

Expectation Expectation::or_nan() const {
  Expectation expectation = *this;
  expectation.or_nan_ = true;
  return expectation;
}

std::string Expectation::compare(DType result, long double found) const {
  const auto differs = [&](const std::string& expected, const std::string& allowed) {
    return fmt::format("expected {}, found {}, allowed {}", expected, spell(result, found), allowed);
  };
  if (std::isnan(found) && (std::isnan(value_) || or_nan_)) return "";
  if (std::isnan(value_)) return differs("nan", "nothing else");
  Wide value = std::clamp(value_, lowest_, highest_);
  if (!info(result).is_floating()) {
    // An integer in a narrower type keeps its low bits.
    value = with_element_type(result, [&]<class T>(T) -> Wide {
      if constexpr (std::is_integral_v<T>) {
        const auto magnitude = static_cast<std::uint64_t>(std::fabs(value));
        return static_cast<Wide>(static_cast<T>(value < 0 ? 0 - magnitude : magnitude));
      }
      return value;
    });
    return found == value ? "" : differs(spell(result, value), "nothing else");
  }
  // Almost every right result is one of these, and rounding keeps the order of what it rounds.
  value = rounded(result, value);
  if (found == value || (lowest_ <= found && found <= highest_)) return "";
  const Wide lowest = rounded(result, lowest_), highest = rounded(result, highest_);
  if (lowest <= found && found <= highest) return "";
  if (!info(result).has_infinity && std::isnan(found) && (std::isinf(lowest) || std::isinf(highest))) return "";
  return differs(spell(result, value),
                 lowest == highest ? "nothing else" : spell(result, lowest) + " to " + spell(result, highest));
}

}  // namespace hone::reduce_reference
