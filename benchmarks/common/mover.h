// Mover: a plain kernel that reads memory or copies it, for ceilings and for driving inputs out of the cache.
#pragma once

#include <memory>
#include <string>

#include <hone/device.h>

namespace hone::benchmarks {

inline constexpr std::size_t kPackBytes = 16;  ///< what a Mover moves at least

/// One way to move memory: through the registers (move_all.cu) or in bulk through shared memory (move_in_bulk.cu).
struct MoverPolicy {
  bool copies = false;  ///< else it reads
  int threads = 0;      ///< of a block; 0: in bulk
  int unroll = 1;       ///< 16-byte loads in flight of a thread; in bulk the chunks in flight of a block
  bool past_l1 = false;
  bool dependent = true;  ///< by programmatic dependent launch, where the device has it
  int chunk_bytes = 0;    ///< in bulk

  bool in_bulk() const { return threads == 0; }
  /// The bytes that a block has in flight.
  std::size_t tile_bytes() const;
  std::string describe() const;
};

/// One compiled policy. Compiles and loads on construction. Not thread-safe.
class Mover {
 public:
  Mover(std::shared_ptr<Device> device, const MoverPolicy& policy);

  /// How many blocks are launched for so many bytes: a block for each tile, or as many as this leaves to an SM.
  int blocks_for(std::size_t bytes, int blocks_per_sm) const;

  /// Enqueues a read of `bytes` from `in`, or a copy to `out`, which reads ignore. Both are aligned to kPackBytes; of
  /// `bytes`, a remainder of these stays.
  void enqueue(const void* in, void* out, std::size_t bytes, int blocks, Stream stream) const;

  const MoverPolicy& policy() const { return policy_; }
  /// The blocks that are resident on an SM at once.
  int resident_blocks() const;

 private:
  std::shared_ptr<Device> device_;
  MoverPolicy policy_;
  std::unique_ptr<Module> module_;
  DeviceBuffer unexpected_;
};

/// The bytes that have to be read to fill a device's cache. Of the host device little is asked, since it runs for its
/// results: what a CPU caches takes it seconds to read.
std::size_t cache_bytes(const DeviceFacts& facts);

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
  std::unique_ptr<Mover> reader_;
};

/// The kernel of others that runs between the calls of a contestant. It takes longer than a launch, so that the host is
/// ahead, and leaves most of the cache alone.
class OtherKernel {
 public:
  explicit OtherKernel(const std::shared_ptr<Device>& device);
  void enqueue(Stream stream) const;

 private:
  DeviceBuffer memory_;
  Mover reader_;
};

}  // namespace hone::benchmarks
