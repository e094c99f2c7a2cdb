// An outside program: sums an array on the host device through an installed Hone.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <vector>

#include <hone/hone.h>

int main() {
  std::vector<std::int32_t> values(100'000);
  std::iota(values.begin(), values.end(), 1);
  const auto n = static_cast<std::int64_t>(values.size());
  const std::int64_t expected = n * (n + 1) / 2;
  try {
    const auto device = hone::Device::open("host");
    hone::SessionOptions options;
    options.on_miss = hone::MissPolicy::heuristic;
    hone::Session session(device, options);

    const std::size_t bytes = values.size() * sizeof(values[0]);
    const hone::DeviceBuffer in(device, bytes);
    device->copy_to_device(in.data(), values.data(), bytes, nullptr);
    const std::int64_t sum = hone::tuned_reduce_and_wait(session, hone::sum, in.as<const std::int32_t>(), n, nullptr);
    std::cout << "sum " << sum << ", expected " << expected << '\n';
    return sum == expected ? 0 : 1;
  } catch (const hone::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
