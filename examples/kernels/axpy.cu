// y[i] = a · x[i] + y[i]
extern "C" __global__ void __launch_bounds__(block_threads) axpy(float a, const float* x, float* y, int n) {
  const long long first = (long long)blockIdx.x * block_threads * unroll + threadIdx.x;
#pragma unroll
  for (int u = 0; u < unroll; ++u) {
    const long long i = first + u * block_threads;
    if (i < n) y[i] = a * x[i] + y[i];
  }
}
