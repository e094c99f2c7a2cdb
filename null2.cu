__global__ void f(int* y) { y[0] = *(volatile int*)0; }
