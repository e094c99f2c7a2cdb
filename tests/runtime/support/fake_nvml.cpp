// A stand-in for NVML, which HONE_NVML names: a device that takes as many watts as it is told, or 100, counted in steps
// of 20 ms as GPUs do.
#include <chrono>
#include <mutex>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kStep{20};

std::mutex mutex;
double watts = 100;
double joules = 1000;
double shown_joules = joules;
Clock::time_point counted_at = Clock::now();
Clock::time_point shown_at = counted_at;

void count() {
  const Clock::time_point now = Clock::now();
  joules += watts * std::chrono::duration<double>(now - counted_at).count();
  counted_at = now;
}

}  // namespace

extern "C" {

void fake_nvml_set_watts(double value) {
  const std::scoped_lock lock(mutex);
  count();
  watts = value;
}

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  *device = &watts;
  return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  const std::scoped_lock lock(mutex);
  count();
  if (counted_at - shown_at >= kStep) {
    shown_joules = joules;
    shown_at = counted_at;
  }
  *millijoules = static_cast<unsigned long long>(shown_joules * 1000);
  return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 350000;
  return 0;
}
}
