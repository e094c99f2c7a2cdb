__global__ void f(int* y) { int* p = nullptr; y[0] += *p; }
