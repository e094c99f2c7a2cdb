#include "runtime/device/nvml/nvml_monitor.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
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
  int (*total_energy_mj)(Handle, unsigned long long*) = nullptr;
  int (*enforced_power_limit_mw)(Handle, unsigned*) = nullptr;

  ~Library() {
    if (is_initialised) shutdown();
    if (handle) dlclose(handle);
  }

  /// Why it cannot be used; "" if it can.
  std::string open(const std::string& pci_bus_id) {
    const std::string named = named_nvml();
    const std::string file = named.empty() ? "libnvidia-ml.so.1" : named;
    handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) return fmt::format("NVML, which counts it, cannot be opened: {}", dlerror());
    int (*init)() = nullptr;
    int (*by_bus_id)(const char*, Handle*) = nullptr;
    if (!find(handle, "nvmlInit_v2", init) || !find(handle, "nvmlShutdown", shutdown) ||
        !find(handle, "nvmlDeviceGetHandleByPciBusId_v2", by_bus_id))
      return fmt::format("{} is no NVML: it lacks nvmlInit_v2, nvmlShutdown or nvmlDeviceGetHandleByPciBusId_v2", file);
    // Renamed by driver 535; the old name is kept for older programs.
    if (!find(handle, "nvmlDeviceGetCurrentClocksEventReasons", clock_reasons))
      find(handle, "nvmlDeviceGetCurrentClocksThrottleReasons", clock_reasons);
    find(handle, "nvmlDeviceGetProcessUtilization", utilization);
    find(handle, "nvmlDeviceGetTotalEnergyConsumption", total_energy_mj);
    find(handle, "nvmlDeviceGetEnforcedPowerLimit", enforced_power_limit_mw);
    int status = init();
    is_initialised = status == kSuccess;
    if (is_initialised) status = by_bus_id(pci_bus_id.c_str(), &device);
    return status == kSuccess ? "" : fmt::format("NVML does not know the device {} (status {})", pci_bus_id, status);
  }
};

std::string named_nvml() {
  const char* const name = ::secure_getenv("HONE_NVML");
  return name ? name : "";
}

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
  why_not_ = library->open(pci_bus_id);
  if (why_not_.empty()) library_ = std::move(library);
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

EnergyReading NvmlMonitor::energy() const {
  if (!library_) return {.missing = why_not_};
  if (!library_->total_energy_mj) return {.missing = "this NVML has no nvmlDeviceGetTotalEnergyConsumption"};
  const std::scoped_lock lock(mutex_);
  unsigned long long millijoules = 0;
  if (const int status = library_->total_energy_mj(library_->device, &millijoules); status != kSuccess)
    return {.missing = fmt::format("NVML has no energy counter for it (nvmlDeviceGetTotalEnergyConsumption returned "
                                   "{}; GPUs have one from Volta on)", status)};
  unsigned milliwatts = 0;
  if (library_->enforced_power_limit_mw) library_->enforced_power_limit_mw(library_->device, &milliwatts);
  return {.joules = static_cast<double>(millijoules) / 1e3, .power_limit_w = milliwatts / 1e3};
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
