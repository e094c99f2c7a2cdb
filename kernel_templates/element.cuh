// Elements that are only copied: their packs, and the transposition of small blocks of packs in registers.
#pragma once

#include "pack.cuh"
#include "scalars.cuh"

namespace hone {

/// A 16-byte element whose address may be a multiple of 8 only.
template <unsigned kAlignment>
struct alignas(kAlignment) Wide {
  unsigned long long low, high;
};

/// kWidth neighbouring elements, for one vectorized access.
template <class T, unsigned kWidth>
using ElementPack = typename Select<kWidth == 1, T, Pack<T, kWidth>>::type;

/// transposed[c][r] = block[r][c].
template <class T, unsigned kWidth>
__device__ void transpose_block(const ElementPack<T, kWidth> (&block)[kWidth],
                                ElementPack<T, kWidth> (&transposed)[kWidth]) {
  if constexpr (kWidth == 1) {
    transposed[0] = block[0];
  } else if constexpr (sizeof(T) == 2 && kWidth * sizeof(T) % 4 == 0) {
#pragma unroll
    for (unsigned c = 0; c < kWidth; ++c)
#pragma unroll
      for (unsigned r = 0; r < kWidth; r += 2)
        transposed[c].parts[r / 2] =
            __byte_perm(block[r].parts[c / 2], block[r + 1].parts[c / 2], c % 2 == 0 ? 0x5410 : 0x7632);
  } else if constexpr (sizeof(T) == 1 && kWidth % 4 == 0) {
#pragma unroll
    for (unsigned c = 0; c < kWidth; c += 4) {
#pragma unroll
      for (unsigned r = 0; r < kWidth; r += 4) {
        const unsigned a = block[r].parts[c / 4], b = block[r + 1].parts[c / 4];
        const unsigned d = block[r + 2].parts[c / 4], e = block[r + 3].parts[c / 4];
        const unsigned ab_low = __byte_perm(a, b, 0x5140), ab_high = __byte_perm(a, b, 0x7362);
        const unsigned de_low = __byte_perm(d, e, 0x5140), de_high = __byte_perm(d, e, 0x7362);
        transposed[c].parts[r / 4] = __byte_perm(ab_low, de_low, 0x5410);
        transposed[c + 1].parts[r / 4] = __byte_perm(ab_low, de_low, 0x7632);
        transposed[c + 2].parts[r / 4] = __byte_perm(ab_high, de_high, 0x5410);
        transposed[c + 3].parts[r / 4] = __byte_perm(ab_high, de_high, 0x7632);
      }
    }
  } else {
    unrolled<kWidth>([&](unsigned c) { unrolled<kWidth>([&](unsigned r) { transposed[c].set(r, block[r][c]); }); });
  }
}

}  // namespace hone
