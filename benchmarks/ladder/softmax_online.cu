// Largest and sum in one pass: where a larger element comes, the sum so far is scaled down to it. The input is read
// twice.
#include "row_block.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    softmax_online(const float* in, float* out, float*, float*, unsigned columns) {
  const unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * columns;
  const float* const row = in + first;
  float own_most = negative_infinity(), sum = 0;
  for (unsigned i = threadIdx.x; i < columns; i += kThreads) {
    const float value = row[i], most = fmaxf(own_most, value);
    sum = sum * __expf(own_most - most) + __expf(value - most);
    own_most = most;
  }
  const float most = reduce_block(Larger(), own_most, negative_infinity());
  // A thread without an element has −∞, whose difference from itself is no number.
  sum = own_most > negative_infinity() ? sum * __expf(own_most - most) : 0.0f;
  const float scale = 1.0f / reduce_block(Sum(), sum, 0.0f);
  for (unsigned i = threadIdx.x; i < columns; i += kThreads) out[first + i] = __expf(row[i] - most) * scale;
}
