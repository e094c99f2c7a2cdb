// half, bfloat16, float8_e4m3fn: floats of at most 16 bits in host memory, bit for bit as kernels store them.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace hone {

/// How a binary float divides its bits below the sign. The largest exponent field means infinity and NaN, as in IEEE
/// 754; a format without infinity has numbers there, too, and its only NaN is all ones.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;  ///< those that are stored
  bool has_infinity = true;
};

namespace detail {
float float_of_bits(FloatFormat format, unsigned bits);
unsigned bits_of_float(FloatFormat format, float value);
}  // namespace detail

/// Converts to float exactly, and from float to the nearest, ties to even. What is too large for a format without
/// infinity becomes NaN. A NaN becomes the positive one whose other bits are all ones.
template <FloatFormat kFormat>
struct small_float {
  std::conditional_t<kFormat.exponent_bits + kFormat.mantissa_bits < 8, std::uint8_t, std::uint16_t> bits;

  small_float() = default;
  explicit small_float(float value) : bits(static_cast<decltype(bits)>(detail::bits_of_float(kFormat, value))) {}
  explicit operator float() const { return detail::float_of_bits(kFormat, bits); }
};

/// IEEE 754 binary16; reinterpret a __half* as a half*.
using half = small_float<FloatFormat{5, 10}>;

/// The upper half of a float; reinterpret an __nv_bfloat16* as a bfloat16*.
using bfloat16 = small_float<FloatFormat{8, 7}>;

/// OCP FP8 E4M3: up to ±448, without infinities; reinterpret an __nv_fp8_e4m3* as a float8_e4m3fn*. What is too large
/// becomes NaN, as in PyTorch and ml_dtypes, lest a wrong number pass for a right one.
using float8_e4m3fn = small_float<FloatFormat{4, 3, false}>;

static_assert(sizeof(half) == 2 && sizeof(bfloat16) == 2 && sizeof(float8_e4m3fn) == 1);

}  // namespace hone

template <hone::FloatFormat kFormat>
struct std::numeric_limits<hone::small_float<kFormat>> {
  using T = hone::small_float<kFormat>;
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = kFormat.has_infinity;
  static constexpr bool has_quiet_NaN = true;
  static constexpr int radix = 2;
  static constexpr int digits = kFormat.mantissa_bits + 1;
  static constexpr int min_exponent = 3 - (1 << (kFormat.exponent_bits - 1));
  static constexpr int max_exponent = (1 << (kFormat.exponent_bits - 1)) + (has_infinity ? 0 : 1);

  static constexpr T denorm_min() { return of_bits(1); }
  static constexpr T max() { return of_bits(kBeyondNumbers - 1); }
  static constexpr T lowest() { return of_bits(kSign | (kBeyondNumbers - 1)); }
  static constexpr T infinity() { return of_bits(has_infinity ? kBeyondNumbers : 0); }
  static constexpr T quiet_NaN() { return of_bits(kSign - 1); }

 private:
  static constexpr unsigned kSign = 1u << (kFormat.exponent_bits + kFormat.mantissa_bits);
  /// The bits of infinity, or of NaN where there is none.
  static constexpr unsigned kBeyondNumbers = has_infinity ? kSign - (1u << kFormat.mantissa_bits) : kSign - 1;

  static constexpr T of_bits(unsigned bits) {
    T value{};
    value.bits = static_cast<decltype(value.bits)>(bits);
    return value;
  }
};
