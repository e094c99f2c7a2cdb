__device__ int g(const int* p) { return *p; }
__global__ void f(int* y) { y[threadIdx.x] = g(nullptr); }
