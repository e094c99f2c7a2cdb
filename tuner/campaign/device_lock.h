// DeviceLock: one campaign at a time on one cache file and device.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

namespace hone::tuner {

/// Two campaigns on one device would disturb each other's measurements, and tune the same problems. The lock is on a
/// file beside the cache ("cache.sqlite.cuda:0.tuning"), which stays; it goes with the process, however that ends.
/// Move-only.
class DeviceLock {
 public:
  /// Waits while another process holds it; calls `on_wait` before, with that process's number (0: not known). Not held
  /// when `stop` was requested meanwhile. Throws StoreError(untrusted), and makes nothing, where the place of the cache
  /// is not trusted, and CommandError(cache) when the file cannot be made or something else has its name.
  DeviceLock(const std::filesystem::path& cache, const std::string& device, const std::stop_token& stop,
             const std::function<void(long process)>& on_wait);
  ~DeviceLock();
  DeviceLock(DeviceLock&& other) noexcept;
  DeviceLock& operator=(DeviceLock&&) = delete;

  bool is_held() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

}  // namespace hone::tuner
