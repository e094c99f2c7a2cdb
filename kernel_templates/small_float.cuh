// Conversions between float and the formats of at most 16 bits, for every device and for C++.
//
// A Format has exponent_bits and mantissa_bits, those that are stored, and has_infinity: the largest exponent means
// infinity and NaN, as in IEEE 754; without, there are numbers, too, and the only NaN is all ones.
#pragma once

namespace hone {

/// Exact.
template <class Format>
__device__ inline float float_of_bits(Format format, unsigned bits) {
  const int below_sign = format.exponent_bits + format.mantissa_bits, shift = 23 - format.mantissa_bits;
  const unsigned sign = bits >> below_sign << 31, magnitude = bits & ((1u << below_sign) - 1);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const unsigned infinity = (1u << below_sign) - (1u << format.mantissa_bits);
  if (magnitude >= (format.has_infinity ? infinity : infinity | ((1u << format.mantissa_bits) - 1)))
    return __uint_as_float(sign | 0x7f800000u | magnitude << shift);
  if (bias == 127) return __uint_as_float(sign | magnitude << shift);  // a float without its last bits
  if (magnitude >> format.mantissa_bits != 0)
    return __uint_as_float(sign | ((magnitude << shift) + (static_cast<unsigned>(127 - bias) << 23)));
  const float last_place = __uint_as_float(static_cast<unsigned>(128 - bias - format.mantissa_bits) << 23);
  const float subnormal = static_cast<float>(magnitude) * last_place;
  return sign != 0 ? -subnormal : subnormal;
}

/// To the nearest, ties to even. What is too large becomes infinity, or else NaN: all ones below the sign, as in PTX.
template <class Format>
__device__ inline unsigned bits_of_float(Format format, float value) {
  const int below_sign = format.exponent_bits + format.mantissa_bits, shift = 23 - format.mantissa_bits;
  const unsigned nan = (1u << below_sign) - 1;
  if (value != value) return nan;
  const unsigned bits = __float_as_uint(value);
  const unsigned sign = bits >> 31 << below_sign, magnitude = bits & 0x7fffffffu;
  const unsigned rebias = static_cast<unsigned>(128 - (1 << (format.exponent_bits - 1))) << 23;
  if (rebias != 0 && magnitude < rebias + (1u << 23)) {
    // Subnormals are multiples of one number, which is the last place of the floats from `one` on: the sum rounds.
    const unsigned one = rebias + (static_cast<unsigned>(shift + 1) << 23);
    return sign | (__float_as_uint(__uint_as_float(magnitude) + __uint_as_float(one)) - one);
  }
  const unsigned odd = magnitude >> shift & 1;
  const unsigned rounded = (magnitude - rebias + (1u << (shift - 1)) - 1 + odd) >> shift;
  const unsigned most = format.has_infinity ? nan + 1 - (1u << format.mantissa_bits) : nan;
  if (rounded < most) return sign | rounded;
  return format.has_infinity ? sign | most : nan;
}

}  // namespace hone
