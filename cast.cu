__global__ void f(int* y, float v) {
  y[threadIdx.x] = (int)v;
}
