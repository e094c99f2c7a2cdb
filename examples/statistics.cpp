// Computes several statistics of an array in one pass, and one more that is written as CUDA C++ expressions.
#include <cstdint>
#include <cstdio>
#include <tuple>
#include <vector>

#include <hone/hone.h>

int main() try {
  std::vector<float> values;
  for (int i = 0; i < 6000; ++i) values.push_back(i % 2 == 0 ? 2.0f : 8.0f);
  const auto n = static_cast<std::int64_t>(values.size());

  const auto device = hone::Device::open("auto");
  hone::Session session(device);
  const hone::OwnStream stream(*device);
  const hone::DeviceBuffer in(device, values.size() * sizeof(float));
  device->copy_to_device(in.data(), values.data(), in.size_bytes(), stream.get());

  struct Results {
    double geometric_mean;
    float sum, mean, extremes[2];
  };
  const hone::DeviceBuffer out(device, sizeof(Results));
  auto* const results = out.as<Results>();

  // The array is read once for all three.
  hone::tuned_reduce(session, hone::fuse(hone::sum, hone::mean, hone::minmax), in.as<float>(), n,
                     std::tuple(&results->sum, &results->mean, results->extremes), stream.get());

  // These expressions are compiled at run time, and verified, tuned and cached like Hone's own reductions.
  const hone::CustomReduction geometric_mean({.name = "geometric_mean",
                                              .map = "log(Acc(x))",
                                              .combine = "a + b",
                                              .identity = "0",
                                              .finish = "exp(acc / n)"},
                                             hone::DType::f64);
  hone::tuned_reduce(session, geometric_mean, in.as<float>(), n, &results->geometric_mean, stream.get());

  Results found;
  device->copy_to_host(&found, results, sizeof(found), stream.get());
  device->synchronize(stream.get());
  std::printf("sum %g, mean %g, from %g to %g, geometric mean %.6f\n", found.sum, found.mean, found.extremes[0],
              found.extremes[1], found.geometric_mean);
} catch (const hone::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
