// CudaComparison: compares device memory with what it should hold, on the device.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <hone/device.h>

namespace hone {

/// A kernel looks for the first difference of each run, and one word a run comes back. Copying a MiB to the host and
/// comparing it there takes about a quarter of a millisecond, the kernel a few microseconds. It is compiled after so
/// many bytes that compiling it would have been cheaper than to copy them. Needs nothing of CUDA but a compiler, so
/// tests run it on the host device. Thread-safe.
class CudaComparison {
 public:
  static constexpr std::size_t kBytesBeforeCompiling = std::size_t{192} << 20;
  static constexpr std::size_t kMostRuns = 256;

  explicit CudaComparison(Device& device, std::size_t bytes_before_compiling = kBytesBeforeCompiling)
      : device_(device), bytes_left_(bytes_before_compiling) {}
  ~CudaComparison() {
    if (first_) device_.deallocate(first_);
  }
  CudaComparison(const CudaComparison&) = delete;
  CudaComparison& operator=(const CudaComparison&) = delete;

  /// As Device::first_differences(); nullopt where the bytes are to be copied: they are few so far, the runs are more
  /// than kMostRuns, or nothing compiles or loads the kernel.
  std::optional<std::vector<std::size_t>> first_differences(std::span<const RepeatedBytes> runs, Stream stream);

 private:
  bool is_ready_for(std::size_t bytes);

  Device& device_;
  std::mutex mutex_;  ///< one comparison at a time
  std::size_t bytes_left_;
  bool was_tried_ = false;
  std::unique_ptr<Module> module_;  ///< none before the kernel is compiled, nor where it cannot be
  void* first_ = nullptr;           ///< device memory of kMostRuns words: the first difference of each run
};

}  // namespace hone
