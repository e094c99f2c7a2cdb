// Tunes a kernel of your own: y[i] = a·x[i] + y[i].
#include <hone/hone.h>
#include <cstdio>
#include <vector>

int main() try {
  const hone::TunableKernel axpy({
      .source = R"(
        extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
          for (int u = 0; u < unroll; ++u) {
            const int i = (blockIdx.x * unroll + u) * block_threads + threadIdx.x;
            if (i < n) y[i] = a * x[i] + y[i];
          }
        })",
      .parameters = {hone::ordinal("block_threads", {256, 128, 512}), hone::ordinal("unroll", {4, 1, 2, 8})},
      .arguments = {hone::scalar<float>("a"), hone::in<float>("x"), hone::inout<float>("y"), hone::extent<int>("n")},
      .elements_per_thread = {"unroll"},
      .reference =
          [](float a, std::span<const float> x, std::span<float> y, int) {
            for (std::size_t i = 0; i < y.size(); ++i) y[i] = a * x[i] + y[i];
          },
  });
  hone::SessionOptions options = hone::SessionOptions::from_environment();
  options.on_miss = hone::MissPolicy::tune;  // the first launch measures; by default a model chooses
  hone::Session session(hone::Device::open("auto"), options);
  const std::vector<float> ones(1'000'000, 1.0f);
  const hone::DeviceBuffer x(session.device(), ones), y(session.device(), ones);
  const hone::Choice choice = session.launch(axpy, {2.5f, x, y}, ones.size(), nullptr);
  std::printf("%s: 2.5 · 1 + 1 = %g, by %s (from: %s)\n", session.device()->facts().name.c_str(),
              y.to_host<float>().back(), axpy.family().space().to_string(choice.winner->candidate.policy).c_str(),
              name(choice.source).data());
} catch (const hone::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
