// Tunes a two-dimensional stencil of your own: blocks stage a tile with its halo in dynamic shared memory.
#include <hone/hone.h>
#include <algorithm>
#include <cstdio>
#include <vector>

constexpr const char* kSource = R"(
  extern "C" __global__ void __launch_bounds__(block_x * block_y)
  blur(const float* in, float* out, int width, int height) {
    extern __shared__ float tile[];
    constexpr int kColumns = block_x + 2, kRows = block_y * rows + 2;
    const int left = blockIdx.x * block_x - 1, top = blockIdx.y * block_y * rows - 1;
    for (int i = threadIdx.y * block_x + threadIdx.x; i < kColumns * kRows; i += block_x * block_y) {
      const int x = min(max(left + i % kColumns, 0), width - 1), y = min(max(top + i / kColumns, 0), height - 1);
      tile[i] = in[(long long)y * width + x];
    }
    __syncthreads();
    const int x = left + 1 + threadIdx.x;
    for (int r = 0; r < rows; ++r) {
      const int row = threadIdx.y + r * block_y, y = top + 1 + row;
      const float* here = tile + (row + 1) * kColumns + threadIdx.x + 1;
      if (x < width && y < height)
        out[(long long)y * width + x] = 0.2f * (here[0] + here[-1] + here[1] + here[-kColumns] + here[kColumns]);
    }
  })";

int main() try {
  const hone::TunableKernel blur({
      .source = kSource,
      .parameters = {hone::ordinal("block_x", {32, 16, 64, 128}), hone::ordinal("block_y", {8, 4, 16}),
                     hone::ordinal("rows", {1, 2, 4})},
      .where = {"64 <= block_x * block_y <= 1024"},
      .extents = {"width", "height"},
      .arguments = {hone::in<float>("in"), hone::out<float>("out"), hone::extent<int>("width"),
                    hone::extent<int>("height")},
      .block = {"block_x", "block_y"},
      .elements_per_thread = {"1", "rows"},
      .dynamic_smem_bytes = "4 * (block_x + 2) * (block_y * rows + 2)",
      .reference =
          [](std::span<const double> in, std::span<double> out, int width, int height) {
            const auto at = [&](int x, int y) {
              return in[std::size_t(std::clamp(y, 0, height - 1)) * width + std::clamp(x, 0, width - 1)];
            };
            for (int y = 0; y < height; ++y)
              for (int x = 0; x < width; ++x)
                out[std::size_t(y) * width + x] =
                    0.2 * (at(x, y) + at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1));
          },
  });
  hone::SessionOptions options = hone::SessionOptions::from_environment();
  options.on_miss = hone::MissPolicy::tune;  // the first launch measures; by default a model chooses
  hone::Session session(hone::Device::open("auto"), options);
  const hone::DeviceBuffer in(session.device(), std::vector<float>(1000 * 700, 1)), out(session.device(), 2'800'000);
  const hone::Choice choice = session.launch(blur, {in, out}, {1000, 700}, nullptr);
  std::printf("the blur of ones is %.1f, by %s\n", out.to_host<float>().back(),
              blur.family().space().to_string(choice.winner->candidate.policy).c_str());
} catch (const hone::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
