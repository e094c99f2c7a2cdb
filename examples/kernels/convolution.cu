// out[y][x] = Σ filter[j][i] · in[y + j][x + i], for a filter of 17 × 17. A block stages a tile of the image and the
// filter in shared memory; a thread computes tile_x × tile_y points of it.
extern "C" __global__ void __launch_bounds__(block_x * block_y)
convolution(const float* in, const float* filter, float* out, int width, int height) {
  constexpr int kHalo = 16, kSize = kHalo + 1;
  constexpr int kColumns = block_x * tile_x + kHalo, kRows = block_y * tile_y + kHalo, kPitch = kColumns + padding;
  __shared__ float tile[kRows * kPitch], weights[kSize * kSize];
  const int left = blockIdx.x * block_x * tile_x, top = blockIdx.y * block_y * tile_y;
  const int thread = threadIdx.y * block_x + threadIdx.x;
  const long long in_width = width + kHalo, in_height = height + kHalo;
  for (int i = thread; i < kSize * kSize; i += block_x * block_y) weights[i] = filter[i];
  for (int i = thread; i < kColumns * kRows; i += block_x * block_y) {
    const int x = i % kColumns, y = i / kColumns;
    const bool is_inside = left + x < in_width && top + y < in_height;
    const float* point = in + (top + y) * in_width + left + x;
    tile[y * kPitch + x] = !is_inside ? 0.0f : read_only ? __ldg(point) : *point;
  }
  __syncthreads();
  float sums[tile_y][tile_x] = {};
  for (int j = 0; j < kSize; ++j)
    for (int i = 0; i < kSize; ++i)
#pragma unroll
      for (int v = 0; v < tile_y; ++v)
#pragma unroll
        for (int u = 0; u < tile_x; ++u)
          sums[v][u] += weights[j * kSize + i] *
                        tile[(threadIdx.y + v * block_y + j) * kPitch + threadIdx.x + u * block_x + i];
#pragma unroll
  for (int v = 0; v < tile_y; ++v)
#pragma unroll
    for (int u = 0; u < tile_x; ++u) {
      const int x = left + threadIdx.x + u * block_x, y = top + threadIdx.y + v * block_y;
      if (x < width && y < height) out[(long long)y * width + x] = sums[v][u];
    }
}
