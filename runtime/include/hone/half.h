// half and bfloat16: 16-bit floats in host memory, bit for bit as kernels store them.
#pragma once

#include <cstdint>

namespace hone {

/// IEEE 754 binary16. Converts to float exactly, and from float to the nearest, ties to even; reinterpret a __half*
/// as a half*.
struct half {
  std::uint16_t bits;

  half() = default;
  explicit half(float value);
  explicit operator float() const;
};

/// The upper half of a float. Converts likewise; reinterpret an __nv_bfloat16* as a bfloat16*.
struct bfloat16 {
  std::uint16_t bits;

  bfloat16() = default;
  explicit bfloat16(float value);
  explicit operator float() const;
};

static_assert(sizeof(half) == 2 && sizeof(bfloat16) == 2);

}  // namespace hone
