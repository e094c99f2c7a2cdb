// Maximum and minimum over packs; NaNs are ignored. 16-bit floats are compared two per instruction.
#pragma once

#include "pack.cuh"
#include "scalars.cuh"

namespace hone {

/// The larger (or smaller) float in each 16-bit half; NaNs are ignored.
template <bool kLargest, class T>
__device__ unsigned extreme_of_pairs(unsigned a, unsigned b) {
#if !defined(HONE_HOST_DEVICE) && __CUDA_ARCH__ >= 800
  unsigned result;
  if constexpr (kSame<T, Half> && kLargest) asm("max.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  else if constexpr (kSame<T, Half>) asm("min.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  else if constexpr (kLargest) asm("max.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  else asm("min.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
#else
  T x[2], y[2];
  memcpy(x, &a, 4);
  memcpy(y, &b, 4);
  for (unsigned i = 0; i < 2; ++i) {
    const float p = static_cast<float>(x[i]);
    const float q = static_cast<float>(y[i]);
    x[i] = is_nan(p) || (kLargest ? q > p : q < p) ? y[i] : x[i];
  }
  unsigned result;
  memcpy(&result, x, 4);
  return result;
#endif
}

/// Elementwise maximum or minimum of two packs of floats; NaNs are ignored.
template <bool kLargest, class T, unsigned kElements>
__device__ Pack<T, kElements> extremes_of(Pack<T, kElements> a, const Pack<T, kElements>& b) {
  if constexpr (kIsFloat16<T> && kElements % 2 == 0) {
#pragma unroll
    for (unsigned w = 0; w < kElements / 2; ++w) a.parts[w] = extreme_of_pairs<kLargest, T>(a.parts[w], b.parts[w]);
  } else {
    using Acc = typename Select<kIsSmallFloat<T>, float, T>::type;
    return Pack<T, kElements>::of(
        [&](unsigned e) { return convert<T>(extreme<kLargest, true>(convert<Acc>(a[e]), convert<Acc>(b[e]))); });
  }
  return a;
}

/// The maximum or minimum over some packs and `start`; NaNs are ignored.
template <bool kLargest, class Acc, class In, unsigned kElements, unsigned kPacks>
__device__ Acc extreme_of(const Pack<In, kElements> (&packs)[kPacks], Acc start) {
  if constexpr (kIsFloat16<In> && kElements % 2 == 0) {
    Pack<In, kElements> extremes = packs[0];
#pragma unroll
    for (unsigned u = 1; u < kPacks; ++u) extremes = extremes_of<kLargest>(extremes, packs[u]);
    unsigned pair = extremes.parts[0];
#pragma unroll
    for (unsigned w = 1; w < kElements / 2; ++w) pair = extreme_of_pairs<kLargest, In>(pair, extremes.parts[w]);
    In two[2];
    memcpy(two, &pair, 4);
    return extreme<kLargest, true>(start, extreme<kLargest, true>(convert<Acc>(two[0]), convert<Acc>(two[1])));
  } else {
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
#pragma unroll
      for (unsigned e = 0; e < kElements; ++e) start = extreme<kLargest, true>(start, convert<Acc>(packs[u][e]));
    }
    return start;
  }
}

}  // namespace hone
