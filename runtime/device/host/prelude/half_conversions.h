// The host's twins of PTX's conversions between float and the 16-bit floats, bit for bit (a NaN becomes 0x7fff, PTX's
// canonical one).
#pragma once

namespace hone_host {

inline float float_of_half(unsigned short half) {
  const unsigned sign = (half & 0x8000u) << 16;
  const unsigned magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00) return __uint_as_float(sign | 0x7f800000u | magnitude << 13);   // infinity or NaN
  if (magnitude >= 0x0400) return __uint_as_float(sign | ((magnitude << 13) + 0x38000000u));  // bias 127 − 15
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return sign != 0 ? -subnormal : subnormal;
}

inline unsigned short half_of_float(float value) {
  const unsigned bits = __float_as_uint(value);
  const unsigned sign = bits >> 16 & 0x8000u;
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x477ff000u) return static_cast<unsigned short>(sign | 0x7c00u);  // from 65520 on, the next is ∞
  if (magnitude < 0x38800000u) {
    // Below 2^-14 halves are multiples of 2^-24, which is the last place of floats from 0.5 to 1: the sum rounds.
    const unsigned rounded = __float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000u;
    return static_cast<unsigned short>(sign | rounded);
  }
  const unsigned odd = magnitude >> 13 & 1;
  return static_cast<unsigned short>(sign | (magnitude - 0x38000000u + 0xfff + odd) >> 13);
}

inline unsigned short bfloat16_of_float(float value) {
  const unsigned bits = __float_as_uint(value);
  if (value != value) return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace hone_host
