#include "benchmarks/first_result/sample.h"

#include <chrono>
#include <cstddef>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#ifdef HONE_WITH_CUDA_RUNTIME
#include <cuda_runtime_api.h>
#endif
#include <nlohmann/json.hpp>

#include <hone/hone.h>

#include "runtime/trace/trace_range.h"

namespace hone::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

/// "load" of "load sum f32 …", but "find winner" as it is: the steps of the cache are not followed by a name.
std::string step_of(const std::string& message) {
  for (const std::string_view step : {"miss", "lookup", "load", "function", "call", "compile"})
    if (message.starts_with(std::string(step) + ' ')) return std::string(step);
  return message;
}

/// The ranges of this thread, the only one that calls.
struct Ranges {
  struct Open {
    std::string step;
    Clock::time_point start;
    double inside_ms = 0;
  };
  std::vector<Open> open;
  std::map<std::string, double> self_ms;

  void push(const std::string& message) { open.push_back({step_of(message), Clock::now()}); }
  void pop() {
    const double ms = ms_between(open.back().start, Clock::now());
    self_ms[open.back().step] += ms - open.back().inside_ms;
    open.pop_back();
    if (!open.empty()) open.back().inside_ms += ms;
  }
};

thread_local Ranges ranges;

constexpr trace::Listener kStopwatch{.push = [](const std::string& message) { ranges.push(message); },
                                     .pop = []() noexcept { ranges.pop(); }};

/// Zeros in memory that the program has already, as it has a context: not from Hone, whose first allocation and first
/// fill are measured.
class Array {
 public:
  Array(const std::shared_ptr<Device>& device, std::size_t bytes) {
#ifdef HONE_WITH_CUDA_RUNTIME
    if (device->facts().kind == "cuda" && cudaMalloc(&memory_, bytes) == cudaSuccess) {
      const std::vector<std::byte> zeros(bytes);
      cudaMemcpy(memory_, zeros.data(), bytes, cudaMemcpyHostToDevice);
      return;
    }
#endif
    buffer_ = DeviceBuffer(device, bytes);
    memory_ = buffer_.data();
    device->fill_bytes(memory_, 0, bytes, nullptr);
    device->synchronize(nullptr);
  }

  float* get() const { return static_cast<float*>(memory_); }

 private:
  void* memory_ = nullptr;
  DeviceBuffer buffer_;
};

/// Makes the context, where the device has one that is made without Hone. Nothing frees the arrays: the process ends.
void make_context([[maybe_unused]] const std::string& device) {
#ifdef HONE_WITH_CUDA_RUNTIME
  if (device != "host") cudaFree(nullptr);
#endif
}

/// True if a file whose path contains `part` is mapped into this process.
bool is_mapped(std::string_view part) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

nlohmann::ordered_json take_sample(const std::string& device_name, const std::filesystem::path& cache) {
  trace::listener.store(&kStopwatch);
  const Clock::time_point start = Clock::now();
  make_context(device_name);
  const Clock::time_point has_context = Clock::now();
  const std::shared_ptr<Device> device = Device::open(device_name);
  const Clock::time_point has_device = Clock::now();
  const Array in(device, kFirstResultElements * sizeof(float)), out(device, sizeof(float));

  const Clock::time_point begun = Clock::now();
  Session session(device, {.on_miss = MissPolicy::error, .cache_path = cache});
  const Clock::time_point has_session = Clock::now();
  tuned_reduce(session, sum, in.get(), kFirstResultElements, out.get(), nullptr);
  const Clock::time_point called = Clock::now();
  device->synchronize(nullptr);
  const Clock::time_point done = Clock::now();
  nlohmann::ordered_json steps;
  for (const auto& [step, ms] : ranges.self_ms) steps[step] = ms;
  tuned_reduce(session, sum, in.get(), kFirstResultElements, out.get(), nullptr);
  device->synchronize(nullptr);
  const Clock::time_point again = Clock::now();
  return {{"context", ms_between(start, has_context)},
          {"device", ms_between(has_context, has_device)},
          {"total", ms_between(begun, done)},
          {"session", ms_between(begun, has_session)},
          {"call", ms_between(has_session, called)},
          {"sync", ms_between(called, done)},
          {"second", ms_between(done, again)},
          {"steps", steps},
          {"compiles", session.counters().compiles},
          {"has_compiler", is_mapped("libnvrtc")},
          {"device_name", device->facts().name}};
}

}  // namespace hone::benchmarks
