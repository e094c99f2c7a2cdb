// WorkspacePool: scratch memory for launches, one piece per stream and one per captured graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include <hone/device.h>

#include "runtime/dispatch/append_only_map.h"

namespace hone {

/// Device memory that holds zeros. Waits for a stream of its own.
DeviceBuffer zeroed_buffer(const std::shared_ptr<Device>& device, std::size_t bytes);

/// The scratch memory of one stream or captured graph.
struct Workspace {
  void* memory = nullptr;
  std::mutex order;  ///< held from the first to the last launch of a call that consists of several
};

/// Hands out workspaces of kWorkspaceBytes: zeroed once, then kept by their stream or graph for the life of the pool,
/// so that calls in different streams never share one. Thread-safe; finding a known stream's workspace takes no lock.
class WorkspacePool {
 public:
  /// Allocates `for_captures` workspaces that only captured graphs get.
  WorkspacePool(std::shared_ptr<Device> device, int for_captures);

  /// The workspace of a stream. A stream that is being captured gets one for that graph from the reserve, where nothing
  /// may be allocated: throws Error(out_of_memory) when the reserve is used up.
  Workspace& of(const StreamState& stream);

 private:
  struct Owner {
    std::uint64_t stream = 0;
    std::uint64_t capture = 0;  ///< 0: not a graph

    bool operator==(const Owner&) const = default;
    std::size_t hash() const { return static_cast<std::size_t>((stream ^ capture) * 0x9E3779B97F4A7C15u >> 32); }
  };

  void* take(bool capturing);
  void allocate(std::vector<void*>& free, int count);

  std::shared_ptr<Device> device_;
  AppendOnlyMap<Owner, Workspace*> owners_;
  std::mutex mutex_;
  std::deque<Workspace> workspaces_;
  std::vector<DeviceBuffer> memory_;
  std::vector<void*> free_;
  std::vector<void*> free_for_captures_;
  int for_captures_;
};

}  // namespace hone
