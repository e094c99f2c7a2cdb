// Sums an array on the GPU, or on the CPU where there is none.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <hone/hone.h>

int main(int argc, char** argv) try {
  const std::int64_t n = argc > 1 ? std::atoll(argv[1]) : 100'000'000;
  if (n < 0) throw hone::Error(hone::ErrorCode::invalid_argument, "the number of elements is 0 or more");
  const std::vector<float> values(static_cast<std::size_t>(n), 1.23f);

  // One Session per device, for as long as the program runs. "auto" is the first GPU, or else the host.
  const auto device = hone::Device::open("auto");
  hone::Session session(device);

  const hone::Stream stream = device->create_stream();  // or a cudaStream_t of yours
  const hone::DeviceBuffer in(device, values.size() * sizeof(float));
  const hone::DeviceBuffer out(device, sizeof(float));
  device->copy_to_device(in.data(), values.data(), in.size_bytes(), stream);

  // The first call ever takes the kernel that a model expects to be fastest, and compiles it. `hone tune --missed` then
  // finds out which is. A later process loads the stored winner, which takes milliseconds; from then on a call looks
  // up, launches and returns.
  const hone::Choice choice = hone::tuned_reduce(session, hone::sum, in.as<float>(), n, out.as<float>(), stream);

  float sum = 0;
  device->copy_to_host(&sum, out.data(), sizeof(sum), stream);
  device->synchronize(stream);
  device->destroy_stream(stream);

  float naive = 0;
  for (const float value : values) naive += value;

  std::printf("%s: the sum of %lld copies of 1.23f\n", device->facts().name.c_str(), static_cast<long long>(n));
  std::printf("  exact       %.1f\n", static_cast<double>(n) * 1.23f);
  std::printf("  Hone        %.1f  (kernel from: %s, %s; units compiled: %llu)\n", sum, name(choice.source).data(),
              choice.winner->tuned ? "tuned" : "not tuned yet",
              static_cast<unsigned long long>(session.counters().compiles));
  std::printf("  float loop  %.1f\n", naive);
} catch (const hone::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
