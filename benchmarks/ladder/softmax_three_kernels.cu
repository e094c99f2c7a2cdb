// The formula, a kernel for each of its parts: the largest of a row; the sum of exponentials; the quotients. The input
// is read three times.
#include "row_block.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    softmax_three_kernels(const float* in, float* out, float* largest, float* sums, unsigned columns) {
  const float* const row = in + static_cast<unsigned long long>(blockIdx.x) * columns;
  float most = negative_infinity();
  for (unsigned i = threadIdx.x; i < columns; i += kThreads) most = fmaxf(most, row[i]);
  most = reduce_block(Larger(), most, negative_infinity());
  if (threadIdx.x == 0) largest[blockIdx.x] = most;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    softmax_three_kernels_sum(const float* in, float* out, float* largest, float* sums, unsigned columns) {
  const float* const row = in + static_cast<unsigned long long>(blockIdx.x) * columns;
  const float most = largest[blockIdx.x];
  float sum = 0;
  for (unsigned i = threadIdx.x; i < columns; i += kThreads) sum += __expf(row[i] - most);
  sum = reduce_block(Sum(), sum, 0.0f);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    softmax_three_kernels_divide(const float* in, float* out, float* largest, float* sums, unsigned columns) {
  const unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * columns;
  const float most = largest[blockIdx.x], scale = 1.0f / sums[blockIdx.x];
  for (unsigned i = threadIdx.x; i < columns; i += kThreads) out[first + i] = __expf(in[first + i] - most) * scale;
}
