// NvmlMonitor: whether a GPU is throttled or busy with others' work, and the energy that it has taken, asked of NVML
// where it is installed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include <hone/device.h>

namespace hone {

/// How much of the SMs a process used lately, as NVML says.
struct ProcessLoad {
  unsigned pid = 0;
  unsigned sm_percent = 0;
};

/// True if a set of NVML's clock event reasons means that the clock is below what was asked for: power cap, heat, or a
/// power brake (nvml.h, nvmlClocksEventReasons). Idle, application clocks and sync boost are no throttling.
bool is_throttled(std::uint64_t reasons);

/// Says what stands in the way, in words; "" when nothing does.
std::string describe(const DeviceCondition& condition, std::uint64_t reasons, std::span<const ProcessLoad> loads,
                     unsigned own_pid);

/// True if others than `own_pid` used the SMs. Where the list lacks `own_pid` although this process works on the
/// device, pids are of another namespace (a container's) and say nothing: false.
bool is_shared(std::span<const ProcessLoad> loads, unsigned own_pid);

/// The library that HONE_NVML names; "" where it names none, and for programs with more rights than their user.
std::string named_nvml();

/// Opens NVML with dlopen, or the library that HONE_NVML names, which has the same functions; without it, or where it
/// refuses, nothing is ever known. A question about the condition may take longer than many kernels, so that all of
/// them together take at most 2 % of the time: in between, the last answer holds. Thread-safe.
class NvmlMonitor {
 public:
  /// `pci_bus_id` as cudaDeviceGetPCIBusId() writes it.
  explicit NvmlMonitor(const std::string& pci_bus_id);
  ~NvmlMonitor();
  NvmlMonitor(const NvmlMonitor&) = delete;
  NvmlMonitor& operator=(const NvmlMonitor&) = delete;

  DeviceCondition condition() const;

  /// Asks every time.
  EnergyReading energy() const;

 private:
  struct Library;
  DeviceCondition ask() const;

  std::unique_ptr<const Library> library_;  ///< nullptr without NVML
  std::string why_not_;                     ///< there is none
  mutable std::mutex mutex_;
  mutable std::chrono::steady_clock::time_point ask_again_at_{};
  mutable DeviceCondition known_;
};

}  // namespace hone
