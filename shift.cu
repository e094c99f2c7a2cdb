__global__ void f(int* y, int n) {
  y[threadIdx.x] = 1 << n;
}
