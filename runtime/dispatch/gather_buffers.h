// GatherBuffers: the device memory that a communicator's blocks are exchanged in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <hone/device.h>

namespace hone {

/// Each stream has a buffer, and so has each stream of each captured graph, which may be replayed beside them. Buffers
/// live as long as this object, for nobody knows when a graph or a stream is done with one. Thread-safe.
class GatherBuffers {
 public:
  /// Throws Error(invalid_argument) if the buffers are another device's, else binds them to this one.
  void bind(const std::shared_ptr<Device>& device);

  /// At least `bytes` bytes for calls in the stream. While it is being captured, nothing can be allocated: throws
  /// Error(out_of_memory) if none was reserved.
  void* take(const StreamState& stream, std::size_t bytes);

  /// Sets a buffer aside for the next stream that calls, or for one of a graph that will be captured.
  void reserve(std::size_t bytes, bool for_capture);

 private:
  struct Owned {
    std::uint64_t stream = 0;
    bool capturing = false;
    std::uint64_t graph = 0;
    DeviceBuffer memory;
  };

  std::mutex mutex_;
  std::shared_ptr<Device> device_;
  std::vector<Owned> owned_;  ///< a stream's last one is in use
  std::array<std::vector<DeviceBuffer>, 2> reserved_;  ///< for streams, for captures
};

}  // namespace hone
