// Reduces 1000 ones with the cache file named on the command line, and prints what that took: for warm_process_test.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <hone/hone.h>

namespace {

/// Returns true if a file whose path contains `part` is mapped into this process.
bool is_mapped(const std::string& part) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto device = hone::Device::open(argv[1]);
  hone::Session session(device, {.on_miss = hone::MissPolicy::tune,
                                 .tune_budget = std::chrono::seconds(4),
                                 .cache_path = argv[2]});
  const std::vector<float> ones(1000, 1);
  const hone::DeviceBuffer in(device, ones.size() * sizeof(float));
  device->copy_to_device(in.data(), ones.data(), in.size_bytes(), nullptr);
  const float total = hone::tuned_reduce_and_wait(session, hone::sum, in.as<float>(), 1000, nullptr);
  const hone::SessionCounters counters = session.counters();
  std::printf("total=%g compiles=%d cache_hits=%d tunings=%d cache_failures=%d nvrtc=%d\n", static_cast<double>(total),
              static_cast<int>(counters.compiles > 0), static_cast<int>(counters.cache_hits),
              static_cast<int>(counters.tunings), static_cast<int>(counters.cache_failures), is_mapped("libnvrtc"));
}
