// One launch does all three: a row that was just read comes from a cache the second and the third time.
#include "row_block.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    softmax_one_kernel(const float* in, float* out, float*, float*, unsigned columns) {
  const unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * columns;
  const float* const row = in + first;
  float most = negative_infinity(), sum = 0;
  for (unsigned i = threadIdx.x; i < columns; i += kThreads) most = fmaxf(most, row[i]);
  most = reduce_block(Larger(), most, negative_infinity());
  for (unsigned i = threadIdx.x; i < columns; i += kThreads) sum += __expf(row[i] - most);
  const float scale = 1.0f / reduce_block(Sum(), sum, 0.0f);
  for (unsigned i = threadIdx.x; i < columns; i += kThreads) out[first + i] = __expf(row[i] - most) * scale;
}
