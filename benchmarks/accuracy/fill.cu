// Fills an array with numbers that the host can make as well: element i is a function of i and of kKind alone.
//
//   0  uniform     random multiples of 2^−24 in [0, 1), exact in f32
//   1  constant    1.23f
//   2  cancelling  random multiples of 2^−12 below 4096; the second half are the first half's negatives in reverse
//                  order, and the one in the middle, if n is odd, is 1
//   3  swamped     2^26, 1, −2^26, 0, over and over: each 1 is less than half a unit in the last place of its
//                  neighbours
//   4  bits        random bits, as many as an element has
//
// Element (the type) and kKind are defined in front of this file.

__device__ unsigned hash(unsigned i) {  // lowbias32 of Wellons' hash-prospector
  i ^= i >> 16;
  i *= 0x7feb352du;
  i ^= i >> 15;
  i *= 0x846ca68bu;
  return i ^ i >> 16;
}

__device__ Element element(unsigned long long i, unsigned long long n) {
  if constexpr (kKind == 0) return static_cast<Element>((hash(static_cast<unsigned>(i)) >> 8) * (1.0f / 16777216));
  if constexpr (kKind == 1) return static_cast<Element>(1.23f);
  if constexpr (kKind == 2) {
    const unsigned long long mirrored = n - 1 - i;
    if (mirrored == i) return static_cast<Element>(1);
    const float value = (hash(static_cast<unsigned>(i < mirrored ? i : mirrored)) >> 8) * (1.0f / 4096);
    return static_cast<Element>(i < mirrored ? value : -value);
  }
  if constexpr (kKind == 3)
    return static_cast<Element>(i % 2 == 1 ? (i % 4 == 1 ? 1 : 0) : (i % 4 == 0 ? 67108864 : -67108864));
  const unsigned low = hash(static_cast<unsigned>(i));
  const unsigned long long high = hash(~static_cast<unsigned>(i));
  return static_cast<Element>(high << 32 | low);
}

extern "C" __global__ void fill(Element* out, unsigned long long n) {
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride)
    out[i] = element(i, n);
}
