// Half and BFloat16: 16-bit floats as kernels load and store them.
//
// They convert to float exactly and from float to the nearest, ties to even; arithmetic is the float's. On a GPU the
// conversions are single instructions, reached without CUDA's headers; the host device has its own twins of them.
#pragma once

namespace hone {

struct Half {
  unsigned short bits;

  Half() = default;
  explicit __device__ Half(float value) {
#ifdef HONE_HOST_DEVICE
    bits = hone_host::half_of_float(value);
#else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#endif
  }

  explicit __device__ operator float() const {
#ifdef HONE_HOST_DEVICE
    return hone_host::float_of_half(bits);
#else
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#endif
  }
};

struct BFloat16 {
  unsigned short bits;

  BFloat16() = default;
  explicit __device__ BFloat16(float value) {
#if defined(HONE_HOST_DEVICE)
    bits = hone_host::bfloat16_of_float(value);
#elif __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    const unsigned all = __float_as_uint(value);
    bits = value != value ? 0x7fff : static_cast<unsigned short>((all + 0x7fff + (all >> 16 & 1)) >> 16);
#endif
  }

  explicit __device__ operator float() const { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);

}  // namespace hone
