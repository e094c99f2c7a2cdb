#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

#include "runtime/families/built_in_family.h"
#include "runtime/families/counts.h"
#include "runtime/families/reduce/reduce_reference.h"

namespace hone::reduce_reference {
namespace {

using Kinds = std::span<const std::string_view>;

/// The kinds of reproducible results besides, which have to be right in every bit on them.
constexpr std::string_view kForBits[]{"magnitudes", "subnormals", "negative_zero"};

constexpr std::string_view kFloatSums[]{"uniform", "small_integers", "sparse",          "cancelling",
                                        "nan",     "infinity",       "both_infinities", "all_nan"};
constexpr std::string_view kFloatVariances[]{"uniform", "offset", "sparse", "nan", "infinity", "all_nan"};
constexpr std::string_view kFloatExponentials[]{
    "uniform", "wide", "rising", "falling", "large", "sparse", "nan", "infinity", "all_negative_infinity", "all_nan"};
constexpr std::string_view kFloatProducts[]{"uniform",  "powers_of_two",     "single_zero", "nan",
                                            "infinity", "zero_and_infinity", "all_nan"};
constexpr std::string_view kFloatExtremes[]{"uniform", "ascending", "descending",      "ties",   "negative", "nan",
                                            "nans",    "infinity",  "both_infinities", "all_nan"};
constexpr std::string_view kFloatTruths[]{"uniform",     "mixed", "all_zero",      "all_one",   "single_one",
                                          "single_zero", "nan",   "negative_zero", "subnormal", "all_nan"};
constexpr std::string_view kIntegerSums[]{"uniform", "extreme"};
constexpr std::string_view kIntegerSumsInFloats[]{"uniform", "extreme", "sparse"};
constexpr std::string_view kIntegerProducts[]{"uniform", "extreme", "single_zero"};
constexpr std::string_view kIntegerProductsInFloats[]{"uniform", "single_zero"};
constexpr std::string_view kIntegerExtremes[]{"uniform", "extreme",     "ascending",   "descending",
                                              "ties",    "last_lowest", "last_highest"};
constexpr std::string_view kIntegerTruths[]{"uniform", "mixed", "all_zero", "all_one", "single_one", "single_zero"};
constexpr std::string_view kBooleans[]{"mixed", "all_zero", "all_one", "single_one", "single_zero"};

/// The kinds of input for floats, integers that floats accumulate, and other integers.
struct KindsOfHazard {
  ReduceHazard hazard;
  Kinds floats, integers_in_floats, integers;
};
constexpr std::array<KindsOfHazard, 6> kTable{
    {{ReduceHazard::factors, kFloatProducts, kIntegerProductsInFloats, kIntegerProducts},
     {ReduceHazard::extremes, kFloatExtremes, kIntegerExtremes, kIntegerExtremes},
     {ReduceHazard::variance, kFloatVariances, kIntegerSumsInFloats, kIntegerSums},
     {ReduceHazard::exponentials, kFloatExponentials, kIntegerSumsInFloats, kIntegerSums},
     {ReduceHazard::truth, kFloatTruths, kIntegerTruths, kIntegerTruths},
     {ReduceHazard::cancellation, kFloatSums, kIntegerSumsInFloats, kIntegerSums}}};

const KindsOfHazard& kinds_of(ReduceOp op) {
  return *std::find_if(kTable.begin(), kTable.end(), [&](const auto& row) { return row.hazard == info(op).hazard; });
}

template <class T>
class PatternMaker {
 public:
  /// bool is made as the byte that holds it.
  using Element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
  static constexpr bool kFloating = info(kDTypeOf<T>).is_floating();
  using Float = std::numeric_limits<T>;
  static constexpr bool kSigned = kFloating || info(kDTypeOf<T>).kind == DTypeKind::signed_integer;

  PatternMaker(const ReduceSpec& spec, int input, std::int64_t n)
      : spec_(spec),
        input_(input),
        repetitions_(n / kInputPeriod + 1),
        values_(static_cast<std::size_t>(std::min(n, kInputPeriod))),
        random_(static_cast<std::uint64_t>(2 * n + input)),
        order_(static_cast<std::uint64_t>(n)) {}

  std::vector<std::byte> make(std::string_view kind) {
    if (!values_.empty()) fill(kind);
    return bytes_of(values_);
  }

 private:
  void fill(std::string_view kind) {
    if (kind == "uniform") return uniform();
    if (kind == "mixed") return each([&] { return random_() % 2 == 0 ? 0 : kFloating ? real(0.5, 1) : 1; });
    if (kind == "all_zero" || kind == "single_one") return all(of(0), of(kind == "all_zero" ? 0 : 1));
    if (kind == "all_one") return all(of(1));
    if (kind == "single_zero") return single_zero();
    if (kind == "sparse") return sparse();
    if (kind == "ties") return ties();
    if (kind == "ascending" || kind == "descending") return ascending(kind == "descending");
    if constexpr (kFloating) fill_floats(kind);
    else fill_integers(kind);
  }

  void fill_floats(std::string_view kind) {
    if (kind == "small_integers") return pairs(4, true);
    if (kind == "cancelling") return pairs(0, false);
    if (kind == "offset") return spread(1, std::ldexp(1.0, 5 * Float::digits / 8));
    if (kind == "wide") return spread(sizeof(T) == 8 ? 2000 : 200);
    if (kind == "rising" || kind == "falling") return ramp(kind == "rising" ? 1 : -1);
    if (kind == "large") return large();
    if (kind == "negative") return each([&] { return -real(0.5, 1); });
    if (kind == "powers_of_two") return powers_of_two();
    if (kind == "all_nan") return all(of(kNan));
    if (kind == "negative_zero") return all(of(-0.0));
    if (kind == "magnitudes") return magnitudes();
    if (kind == "subnormals") return spread(std::ldexp(1.0, Float::min_exponent - 1));
    if (kind == "all_negative_infinity") return all(of(-infinity()));
    if (kind == "subnormal") return all(of(0), smallest_subnormal());
    background();
    if (kind == "nan") (input_ == 0 ? values_.back() : values_.front()) = of(kNan);
    if (kind == "nans")
      for (std::size_t third : {values_.size() / 3, values_.size() * 2 / 3, values_.size() - 1})
        values_[third] = of(kNan);
    if (kind == "infinity" || kind == "both_infinities" || kind == "zero_and_infinity") {
      // The other factor of a dot product is no zero, lest the result be NaN.
      values_.back() = input_ == 0 ? of(infinity()) : of(0.5);
      if (kind == "both_infinities") values_.front() = input_ == 0 ? of(-infinity()) : of(0.5);
      if (kind == "zero_and_infinity") values_.front() = of(0);
    }
  }

  void fill_integers(std::string_view kind) {
    using Limits = std::numeric_limits<Element>;
    if (kind == "extreme") {
      const int odd = spec_.op == ReduceOp::product ? 1 : 0;
      for (std::size_t i = 0; i < values_.size(); ++i)
        values_[i] = static_cast<Element>((i % 3 == 0 ? Limits::min() : Limits::max()) | odd);
      return;
    }
    all(of(1), kind == "last_lowest" ? Limits::min() : Limits::max());
  }

  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  static Element of(double value) { return element_of<Element>(value); }
  static double to_double(Element value) { return number_of<double>(value); }

  /// Or the largest number, where a floating dtype has no infinity.
  static double infinity() {
    if constexpr (kFloating && !Float::has_infinity) return to_double(Float::max());
    else return std::numeric_limits<double>::infinity();
  }

  static Element smallest_subnormal() {
    Element value;
    std::memset(&value, 0, sizeof(value));
    const unsigned char one = 1;
    std::memcpy(&value, &one, 1);
    return value;
  }

  /// The exponent of the largest power of two that the dtype holds, up to `most`.
  static int largest_exponent(int most) { return std::min(most, Float::max_exponent - 1); }

  double real(double from, double to) { return std::uniform_real_distribution<double>(from, to)(random_); }
  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }
  double sign() { return kSigned && random_() % 2 == 0 ? -1 : 1; }

  template <class Make>
  void each(const Make& make) {
    for (Element& x : values_) x = of(make());
  }

  void all(Element value) { std::fill(values_.begin(), values_.end(), value); }
  void all(Element value, Element last) {
    all(value);
    values_.back() = last;
  }

  /// A mean whose square has lost a spread of 1 about it has ⅝ of the significand before the point.
  void spread(double largest, double mean = 0) {
    each([&] { return mean + real(-largest, largest); });
  }

  /// Numbers of 70 binades, or as many as the dtype has.
  void magnitudes() {
    const int least = std::max(-35, Float::min_exponent - 1), most = largest_exponent(34);
    const auto binades = static_cast<std::size_t>(most - least + 1);
    each([&] { return sign() * std::ldexp(real(1, 2), least + static_cast<int>(below(binades))); });
  }

  /// Fills the array with the neighbours of an odd element.
  void background() {
    if (info(spec_.op).hazard == ReduceHazard::truth) return all(of(0));
    uniform();
  }

  void uniform() {
    const bool is_product = spec_.op == ReduceOp::product;
    if constexpr (kFloating) {
      if (is_product) return near_one();
      spread(1);
    } else {
      if (is_product && info(spec_.accumulator_dtype()).is_floating()) return small_factors();
      // Odd factors have inverses modulo 2^64: each one but 1 shows in the product.
      for (Element& x : values_) x = static_cast<Element>(is_product ? random_() | 1 : random_());
    }
  }

  void single_zero() {
    if (spec_.op == ReduceOp::product && !std::is_same_v<T, bool>) uniform();
    else all(of(1));
    values_.back() = of(0);
  }

  /// Small integers among elements that add nothing: few enough that 2^33 elements sum exactly in a float (the largest
  /// sum of squares is 16 · 2^19 + (4 + 4) · 2^19 < 2^24), so that each one counts.
  void sparse() {
    const double nothing = spec_.op == ReduceOp::logsumexp ? -infinity() : 0;
    const bool is_second_factor = input_ == 1;
    for (Element& x : values_) x = is_second_factor ? small_integer() : of(nothing);
    if (is_second_factor) return;
    // So few and so small that a float holds the sum of all squares: those at most 16, these 4 and in each period.
    const std::size_t others = std::min<std::size_t>(62, per_period(std::int64_t{1} << 19));
    for (std::size_t i = 0; i < others; ++i) values_[below(values_.size())] = small_integer();
    values_.front() = values_.back() = of(std::is_same_v<T, bool> ? 1 : 2);
  }

  Element small_integer() {
    if constexpr (std::is_same_v<T, bool>) return 1;
    else return of(sign() * static_cast<double>(1 + below(4)));
  }

  /// Pairs of opposite sign, so that sums stay small however often the pattern repeats; in the second factor of a dot
  /// product, pairs of equals. `largest` > 0: integers up to it.
  void pairs(int largest, bool shuffled) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const double x = real(-1, 1);
      if (i % 2 == 0) values_[i] = of(largest > 0 ? std::copysign(std::ceil(std::fabs(x) * largest), x) : x);
      else values_[i] = of((input_ == 0 ? -1 : 1) * to_double(values_[i - 1]));
    }
    if (shuffled) std::shuffle(values_.begin(), values_.end(), order_);
  }

  /// From one end of what the dtype holds to the other, or of ±2^15: each element's exponential dwarfs those of all
  /// before.
  void ramp(double direction) {
    const auto size = static_cast<double>(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i)
      values_[i] = of(direction * std::ldexp(2 * static_cast<double>(i) / size - 1, largest_exponent(15)));
  }

  /// Numbers of few magnitudes, so that neighbours of the largest occur: up to those whose product with log₂ e a float
  /// rounds by far more than exponentials bear. Sums of their squares stay in its range.
  void large() {
    const int most = largest_exponent(31);
    each([&] {
      const double significand = 1 + std::ldexp(static_cast<double>(below(4)), 1 - Float::digits);
      const int exponent = most - 2 * static_cast<int>(below(6));
      return sign() * std::ldexp(significand, exponent);
    });
  }

  /// How often something may stand in one period if it may stand `most` times in all elements.
  std::size_t per_period(std::int64_t most) const {
    return std::min(static_cast<std::size_t>(most / repetitions_), values_.size() / 2);
  }

  void signs() {
    each([&] { return sign(); });
  }

  /// Signs, and pairs of a number near one and its rounded reciprocal. There are so few of them, and so near to one,
  /// that the logarithms of their absolute values add up to less than 70: no subset of them, in whatever order, leaves
  /// the range of a float, though grids have strides that bring together what is far apart.
  void near_one() {
    signs();
    const std::size_t count = std::min(values_.size() / 2, std::max<std::size_t>(1, per_period(std::int64_t{1} << 10)));
    const double farthest = std::min(0x1p-4, 64.0 / (static_cast<double>(repetitions_) * static_cast<double>(count)));
    for (std::size_t i = 0; i < count; ++i) {
      const double x = to_double(of(1 + farthest * real(-1, 1)));
      values_[2 * i] = of(sign() * x);
      values_[2 * i + 1] = of(sign() / x);
    }
    std::shuffle(values_.begin(), values_.end(), order_);
  }

  /// Signs, and doublings and halvings: too few to leave the range of a float in whatever order they are multiplied.
  void powers_of_two() {
    signs();
    const std::size_t count = per_period(60);
    for (std::size_t i = 0; i < count; ++i) {
      values_[2 * i] = of(sign() * 2);
      values_[2 * i + 1] = of(sign() / 2);
    }
    std::shuffle(values_.begin(), values_.end(), order_);
  }

  /// Integers whose product a float holds: units, and few threes.
  void small_factors() {
    signs();
    const std::size_t count = per_period(12);
    for (std::size_t i = 0; i < count; ++i) values_[below(values_.size())] = of(3);
  }

  /// Everything alike in the first half, then three values: the extremes occur often, but never early.
  void ties() {
    for (std::size_t i = 0; i < values_.size(); ++i)
      values_[i] = of((kSigned ? 0 : 1) + (i < values_.size() / 2 ? 0.0 : static_cast<double>(below(3)) - 1));
  }

  void ascending(bool is_reversed) {
    const auto size = static_cast<long double>(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const long double part = static_cast<long double>(i) / size;
      if constexpr (kFloating) {
        values_[i] = of(static_cast<double>(2 * part - 1));
      } else {
        using Limits = std::numeric_limits<Element>;
        const auto lowest = static_cast<long double>(Limits::min());
        const long double range = static_cast<long double>(Limits::max()) - lowest;
        values_[i] = static_cast<Element>(std::floor(lowest + part * range));
      }
    }
    if (is_reversed) std::reverse(values_.begin(), values_.end());
  }

  const ReduceSpec& spec_;
  int input_;
  std::int64_t repetitions_;
  std::vector<Element> values_;
  std::mt19937_64 random_;
  std::mt19937_64 order_;  ///< the same for both factors of a dot product
};

}  // namespace

std::span<const std::string_view> input_kinds(const ReduceSpec& spec) {
  const DTypeInfo& element = info(spec.dtype);
  if (element.kind == DTypeKind::boolean) return kBooleans;
  const KindsOfHazard& kinds = kinds_of(spec.op);
  if (!element.is_floating())
    return info(spec.accumulator_dtype()).is_floating() ? kinds.integers_in_floats : kinds.integers;
  if (!spec.is_reproducible()) return kinds.floats;
  std::vector<std::string_view> all(kinds.floats.begin(), kinds.floats.end());
  all.insert(all.end(), std::begin(kForBits), std::end(kForBits));
  return kept_kinds(std::move(all));
}

std::vector<std::byte> input_pattern(const ReduceSpec& spec, int input, std::int64_t n, std::string_view kind) {
  return with_element_type(spec.dtype, [&]<class T>(T) { return PatternMaker<T>(spec, input, n).make(kind); });
}

}  // namespace hone::reduce_reference
