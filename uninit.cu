__global__ void f(int* y, int n) {
  int a[4];
  if (n > 100) a[1] = 2;
  y[threadIdx.x] = a[1];
  if (n == 3) __builtin_unreachable();
}
