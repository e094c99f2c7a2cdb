// Half and BFloat16: 16-bit floats as kernels load and store them.
//
// They convert to float exactly and from float to the nearest, ties to even; arithmetic is the float's. On a GPU the
// conversions are single instructions, reached without CUDA's headers; the host device has its own twins of them.
#pragma once

// The shuffles of a 16-bit type, as friends: found by the argument alone, they hide none of CUDA's own. On the host
// device a report names the line of the caller, which comes as two more parameters.
#ifdef HONE_HOST_DEVICE
#define HONE_SITE_PARAMETERS , const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define HONE_SITE , file, line
#else
#define HONE_SITE_PARAMETERS
#define HONE_SITE
#endif
#define HONE_SHUFFLE(Type, shuffle, Argument)                                                                        \
  friend __device__ Type shuffle(unsigned mask, Type value, Argument argument, int width = 32 HONE_SITE_PARAMETERS) { \
    value.bits = static_cast<unsigned short>(                                                                        \
        ::shuffle(mask, static_cast<unsigned>(value.bits), argument, width HONE_SITE));                              \
    return value;                                                                                                    \
  }
#define HONE_SHUFFLES(Type)                      \
  HONE_SHUFFLE(Type, __shfl_sync, int)           \
  HONE_SHUFFLE(Type, __shfl_up_sync, unsigned)   \
  HONE_SHUFFLE(Type, __shfl_down_sync, unsigned) \
  HONE_SHUFFLE(Type, __shfl_xor_sync, int)

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

  HONE_SHUFFLES(Half)
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

  HONE_SHUFFLES(BFloat16)
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);

}  // namespace hone

#undef HONE_SITE_PARAMETERS
#undef HONE_SITE
#undef HONE_SHUFFLE
#undef HONE_SHUFFLES
