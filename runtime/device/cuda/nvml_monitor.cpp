#include "runtime/device/cuda/nvml_monitor.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

/// Asking takes at most one part in so many of the time, however slow the driver answers, and never comes sooner than
/// conditions change.
constexpr int kTimesTheAnswer = 50;
constexpr std::chrono::milliseconds kShortestPause{5};

// nvml.h of CUDA 13.0: nvmlClocksEventReasonSwPowerCap, HwSlowdown, SwThermalSlowdown, HwThermalSlowdown and
// HwPowerBrakeSlowdown.
constexpr std::uint64_t kThrottling = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;

// The part of nvml.h that is used here, since the header need not be installed.
constexpr int kSuccess = 0;
using Handle = void*;

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct NvmlMonitor::Library {
  struct UtilizationSample {  // nvmlProcessUtilizationSample_t
    unsigned pid;
    unsigned long long time_stamp_us;
    unsigned sm_percent;
    unsigned memory_percent;
    unsigned encoder_percent;
    unsigned decoder_percent;
  };

  void* handle = nullptr;
  Handle device = nullptr;
  bool is_initialised = false;
  mutable unsigned long long seen_until_us = 0;
  int (*shutdown)() = nullptr;
  int (*clock_reasons)(Handle, unsigned long long*) = nullptr;
  int (*utilization)(Handle, UtilizationSample*, unsigned*, unsigned long long) = nullptr;

  ~Library() {
    if (is_initialised) shutdown();
    if (handle) dlclose(handle);
  }

  bool open(const std::string& pci_bus_id) {
    handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*init)() = nullptr;
    int (*by_bus_id)(const char*, Handle*) = nullptr;
    if (!handle || !find(handle, "nvmlInit_v2", init) || !find(handle, "nvmlShutdown", shutdown) ||
        !find(handle, "nvmlDeviceGetHandleByPciBusId_v2", by_bus_id))
      return false;
    // Renamed by driver 535; the old name is kept for older programs.
    if (!find(handle, "nvmlDeviceGetCurrentClocksEventReasons", clock_reasons))
      find(handle, "nvmlDeviceGetCurrentClocksThrottleReasons", clock_reasons);
    find(handle, "nvmlDeviceGetProcessUtilization", utilization);
    is_initialised = init() == kSuccess;
    return is_initialised && by_bus_id(pci_bus_id.c_str(), &device) == kSuccess;
  }
};

bool is_throttled(std::uint64_t reasons) { return (reasons & kThrottling) != 0; }

bool is_shared(std::span<const ProcessLoad> loads, unsigned own_pid) {
  const auto is_ours = [&](const ProcessLoad& load) { return load.pid == own_pid; };
  if (std::none_of(loads.begin(), loads.end(), is_ours)) return false;
  return std::any_of(loads.begin(), loads.end(),
                     [&](const ProcessLoad& load) { return !is_ours(load) && load.sm_percent > 0; });
}

std::string describe(const DeviceCondition& condition, std::uint64_t reasons, std::span<const ProcessLoad> loads,
                     unsigned own_pid) {
  std::string seen;
  if (condition.is_throttled) seen = fmt::format("the clock is held down (NVML's clock event reasons {:#x})", reasons);
  if (!condition.is_shared) return seen;
  for (const ProcessLoad& load : loads)
    if (load.pid != own_pid && load.sm_percent > 0)
      seen += fmt::format("{}process {} uses {} % of the SMs", seen.empty() ? "" : ", ", load.pid, load.sm_percent);
  return seen;
}

NvmlMonitor::NvmlMonitor(const std::string& pci_bus_id) {
  auto library = std::make_unique<Library>();
  if (library->open(pci_bus_id)) library_ = std::move(library);
}

NvmlMonitor::~NvmlMonitor() = default;

DeviceCondition NvmlMonitor::condition() const {
  if (!library_) return {};
  const std::scoped_lock lock(mutex_);
  const Clock::time_point start = Clock::now();
  if (start >= ask_again_at_) {
    known_ = ask();
    const Clock::time_point end = Clock::now();
    ask_again_at_ = end + std::max<Clock::duration>(kShortestPause, kTimesTheAnswer * (end - start));
  }
  return known_;
}

DeviceCondition NvmlMonitor::ask() const {
  DeviceCondition condition;
  unsigned long long reasons = 0;
  if (library_->clock_reasons && library_->clock_reasons(library_->device, &reasons) == kSuccess)
    condition.is_throttled = is_throttled(reasons);

  std::array<Library::UtilizationSample, 64> samples{};
  std::array<ProcessLoad, 64> loads;
  std::span<const ProcessLoad> known_loads;
  auto count = static_cast<unsigned>(samples.size());
  if (library_->utilization &&
      library_->utilization(library_->device, samples.data(), &count, library_->seen_until_us) == kSuccess) {
    for (unsigned i = 0; i < count; ++i) {
      loads[i] = {samples[i].pid, samples[i].sm_percent};
      library_->seen_until_us = std::max(library_->seen_until_us, samples[i].time_stamp_us);
    }
    known_loads = std::span(loads).first(count);
    condition.is_shared = is_shared(known_loads, static_cast<unsigned>(getpid()));
  }
  condition.seen = describe(condition, reasons, known_loads, static_cast<unsigned>(getpid()));
  return condition;
}

}  // namespace hone
