// Reads an array and does nothing with it: the fastest that any reduction can be.
//
// A grid-stride loop in which each thread has kUnroll 16-byte loads in flight. The words are combined with xor and
// stored only if they make a value that cannot be expected, so that the loads stay and nothing else costs.
//
// kThreads and kUnroll are defined in front of this file.

extern "C" __global__ void __launch_bounds__(kThreads) read_all(const uint4* in, unsigned long long packs,
                                                                unsigned* unexpected) {
  unsigned all = 0;
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * kThreads * kUnroll;
  unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * kThreads * kUnroll + threadIdx.x;
  for (; first + (kUnroll - 1) * kThreads < packs; first += stride) {
    uint4 loaded[kUnroll];
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) loaded[u] = in[first + u * kThreads];
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) all ^= loaded[u].x ^ loaded[u].y ^ loaded[u].z ^ loaded[u].w;
  }
  for (; first < packs; first += kThreads) all ^= in[first].x;
  if (all == 0x9e3779b9u) *unexpected = all;
}
