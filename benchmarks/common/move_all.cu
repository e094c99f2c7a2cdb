// Reads an array and does nothing with it, or copies it, through the registers: no reduction can be faster than the
// one, no softmax and no transpose than the other.
//
// A grid-stride loop over tiles of kThreads × kUnroll packs of 16 bytes; a thread has all loads of a tile in flight.
// The words of a plain read are combined with xor and stored only if they make a value that cannot be expected, so that
// the loads stay and nothing else costs. kPastL1: loads are non-coherent, leave L1 alone and fetch 256 bytes into L2,
// and stores are evicted first. kDependent: the next launch may become resident while this one runs (PDL).
//
// kThreads, kUnroll, kCopies, kPastL1 and kDependent are defined in front of this file.

__device__ inline uint4 load(const uint4* from) {
#if !defined(HONE_HOST_DEVICE) && __CUDA_ARCH__ >= 800
  if constexpr (kPastL1) {
    uint4 value;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(from));
    return value;
  }
#endif
  return *from;
}

__device__ inline void store(uint4* to, uint4 value) {
  if constexpr (kPastL1) __stcs(to, value);
  else *to = value;
}

extern "C" __global__ void __launch_bounds__(kThreads) move_all(const uint4* in, uint4* out, unsigned long long packs) {
#if !defined(HONE_HOST_DEVICE) && __CUDA_ARCH__ >= 900
  if constexpr (kDependent) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
  }
#endif
  unsigned all = 0;
  const auto move = [&](unsigned long long at, uint4 value) {
    if constexpr (kCopies) store(out + at, value);
    else all ^= value.x ^ value.y ^ value.z ^ value.w;
  };
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * kThreads * kUnroll;
  unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * kThreads * kUnroll + threadIdx.x;
  for (; first + (kUnroll - 1) * kThreads < packs; first += stride) {
    uint4 loaded[kUnroll];
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) loaded[u] = load(in + first + u * kThreads);
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) move(first + u * kThreads, loaded[u]);
  }
  for (; first < packs; first += kThreads) move(first, load(in + first));
  if (!kCopies && all == 0x9e3779b9u) out->x = all;
}
