__device__ int g(int n) {
  if (n > 5) return 3;
}
__global__ void f(int* y, int n) {
  y[threadIdx.x] = g(n);
}
