// Reader: the plain kernel that reads memory, for the ceiling of a device and for driving inputs out of its cache.
#pragma once

#include <memory>
#include <string>

#include <hone/device.h>

namespace hone::benchmarks {

inline constexpr std::size_t kPackBytes = 16;  ///< what a Reader loads at a time

/// One compiled policy of read_all.cu. Compiles and loads on construction. Not thread-safe.
class Reader {
 public:
  Reader(std::shared_ptr<Device> device, int threads, int unroll, int blocks_per_sm);

  /// Enqueues a read of `bytes` from `memory`, which is aligned to 16 bytes.
  void enqueue(const void* memory, std::size_t bytes, Stream stream) const;

  std::string describe(std::size_t bytes) const;

 private:
  std::shared_ptr<Device> device_;
  int threads_;
  int unroll_;
  int blocks_;
  std::unique_ptr<Module> module_;
  DeviceBuffer unexpected_;
};

/// The fastest plain read of device memory that was found.
struct ReadCeiling {
  double gbps = 0;
  std::string kernel;  ///< which kernel and geometry, on how much memory
  std::shared_ptr<const Reader> reader;
};

/// The bytes that have to be read to fill a device's cache. Of the host device little is asked, since it runs for its
/// results: what a CPU caches takes it seconds to read.
std::size_t cache_bytes(const DeviceFacts& facts);

/// Times policies of the kernel on `bytes` of `memory`, and returns the best of their medians.
ReadCeiling measure_read_ceiling(const std::shared_ptr<Device>& device, const void* memory, std::size_t bytes,
                                 Stream stream);

/// Fills the device's last-level cache with memory of its own. Reading evicts without leaving lines to be written back,
/// which would slow down what is timed next; the host device, where a kernel takes long, writes instead.
class CacheFlush {
 public:
  explicit CacheFlush(std::shared_ptr<Device> device);
  void enqueue(Stream stream) const;

  /// Returns false if an input of this size drives itself out of the cache.
  bool is_needed_for(std::size_t bytes) const { return bytes < memory_.size_bytes(); }

 private:
  std::shared_ptr<Device> device_;
  DeviceBuffer memory_;
  std::unique_ptr<Reader> reader_;
};

/// The kernel of others that runs between the calls of a contestant. It takes longer than a launch, so that the host is
/// ahead, and leaves most of the cache alone.
class OtherKernel {
 public:
  explicit OtherKernel(const std::shared_ptr<Device>& device);
  void enqueue(Stream stream) const;

 private:
  DeviceBuffer memory_;
  Reader reader_;
};

}  // namespace hone::benchmarks
