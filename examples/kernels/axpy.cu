// y[i] = a · x[i] + y[i], `vector` elements at a time
struct alignas(4 * vector) Pack {
  float at[vector];
};

extern "C" __global__ void __launch_bounds__(block_threads) axpy(float a, const float* x, float* y, int n) {
  const long long first = ((long long)blockIdx.x * unroll * block_threads + threadIdx.x) * vector;
#pragma unroll
  for (int u = 0; u < unroll; ++u) {
    const long long i = first + u * block_threads * vector;
    if (i + vector <= n) {
      const Pack xs = *(const Pack*)(x + i);
      Pack ys = *(const Pack*)(y + i);
#pragma unroll
      for (int v = 0; v < vector; ++v) ys.at[v] = a * xs.at[v] + ys.at[v];
      *(Pack*)(y + i) = ys;
    } else {
      for (long long j = i; j < n; ++j) y[j] = a * x[j] + y[j];
    }
  }
}
