#include "runtime/device/cuda/cuda_limits.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include <hone/own_stream.h>

namespace hone {
namespace {

constexpr int kEmpty = 0, kRead = 1;  // places in the list of entries

/// As in the kernels that are tuned, launches may overlap where the device allows it. Eight packs of each thread are in
/// flight at once; what was read must lead somewhere, or it would not be.
constexpr const char* kSource = R"cuda(
extern "C" __global__ void hone_empty() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

extern "C" __global__ void __launch_bounds__(256) hone_read(const uint4* in, unsigned long long packs, unsigned* out) {
  const unsigned long long kTile = 8 * 256;
  unsigned seen = 0;
  for (unsigned long long tile = blockIdx.x; (tile + 1) * kTile <= packs; tile += gridDim.x) {
    uint4 pack[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) pack[i] = in[tile * kTile + i * 256 + threadIdx.x];
#pragma unroll
    for (int i = 0; i < 8; ++i) seen |= pack[i].x ^ pack[i].y ^ pack[i].z ^ pack[i].w;
  }
  if (seen == 0x9e3779b9) *out = seen;
}
)cuda";

constexpr unsigned kReadingThreads = 256;
constexpr std::size_t kTileBytes = std::size_t{8} * kReadingThreads * 16;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr int kLaunches = 200;  ///< fewer than a stream takes before the host has to wait
constexpr int kRepeats = 10;

/// A quiet host takes this share of what was measured. A busy one takes more, up to 3.6 µs where it takes 2.7 at other
/// times (H100, CUDA 13.0, 2026-11), and too high a limit would take for equal what it tells apart when it is quiet.
constexpr double kQuietShare = 0.75;

/// The least of several: whatever comes between makes it longer.
double least(const std::function<double()>& measure) {
  double us = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRepeats; ++i) us = std::min(us, measure());
  return us;
}

class Limits {
 public:
  explicit Limits(Device& device)
      : device_(device),
        module_(device.load(
            device.compile(
                {.name = "limits", .source = kSource, .headers = {}, .entries = {"hone_empty", "hone_read"}}),
            {"hone_empty", "hone_read"})) {}

  DeviceLimits measure() {
    launch_all();
    device_.synchronize(stream_.get());
    DeviceLimits limits;
    limits.enqueue_us = kQuietShare * least([this] { return host_us(); });
    limits.stream_launch_us = least([this] { return held_us([this] { launch_all(); }) / kLaunches; });
    const std::unique_ptr<CapturedWork> graph = device_.capture(stream_.get(), [this] { launch_all(); });
    limits.graph_launch_us = least([&] { return held_us([&] { device_.replay(*graph, stream_.get()); }) / kLaunches; });
    limits.read_gbps = read_gbps(limits.stream_launch_us);
    device_.synchronize(stream_.get());
    return limits;
  }

 private:
  void launch_all() {
    Launch launch;
    launch.entry = kEmpty;
    launch.grid.x = 1;
    launch.block.x = 32;
    launch.dependent_launch = true;
    for (int i = 0; i < kLaunches; ++i) device_.launch(module_->kernel(kEmpty), launch, stream_.get());
  }

  /// Times one launch by the host's clock.
  double host_us() {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    launch_all();
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kLaunches;
    device_.synchronize(stream_.get());
    return us;
  }

  /// The device begins when the host has enqueued everything.
  double held_us(const std::function<void()>& work) {
    std::unique_ptr<StreamHold> hold = device_.hold(stream_.get());
    return device_.time_us(stream_.get(), [&] {
      work();
      hold.reset();
    });
  }

  double read_gbps(double launch_us) {
    const std::int64_t free_bytes = device_.free_memory_bytes();
    const std::size_t bytes =
        std::min(kMostBytes, static_cast<std::size_t>(free_bytes) / 4) / kTileBytes * kTileBytes;
    if (bytes < 4 * static_cast<std::size_t>(device_.facts().l2_bytes)) return 0;
    const Memory memory(device_, bytes + sizeof(unsigned));
    device_.fill_bytes(memory.data(), 0, bytes, stream_.get());
    double gbps = 0;
    for (const unsigned blocks_per_sm : {1, 2, 4, 8}) {
      Launch launch;
      launch.entry = kRead;
      launch.grid.x = blocks_per_sm * static_cast<unsigned>(device_.facts().sm_count);
      launch.block.x = kReadingThreads;
      launch.arguments.push(memory.data());
      launch.arguments.push(static_cast<unsigned long long>(bytes / 16));
      launch.arguments.push(static_cast<void*>(static_cast<std::byte*>(memory.data()) + bytes));
      const double us = least([&] {
        return held_us([&] { device_.launch(module_->kernel(kRead), launch, stream_.get()); });
      });
      gbps = std::max(gbps, static_cast<double>(bytes) / ((us - launch_us) * 1e3));
    }
    return gbps;
  }

  class Memory {
   public:
    Memory(Device& device, std::size_t bytes) : device_(device), data_(device.allocate(bytes)) {}
    ~Memory() { device_.deallocate(data_); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    void* data() const { return data_; }

   private:
    Device& device_;
    void* data_;
  };

  Device& device_;
  std::unique_ptr<Module> module_;
  OwnStream stream_{device_};
};

}  // namespace

DeviceLimits measure_limits(Device& device) { return Limits(device).measure(); }

}  // namespace hone
