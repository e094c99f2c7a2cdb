// WorkspacePool: scratch memory for launches. A call has a workspace to itself while it is being enqueued.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <hone/device.h>

#include "runtime/dispatch/append_only_map.h"

namespace hone {

/// `count` workspaces of kWorkspaceBytes, one behind the other, whose headers are zero. Waits for a stream of its own.
DeviceBuffer make_workspaces(const std::shared_ptr<Device>& device, int count);

/// A piece of scratch memory of one stream or captured graph. On a cache line of its own: every call writes is_taken.
struct alignas(64) Workspace {
  void* memory = nullptr;
  std::atomic<bool> is_taken = false;
  std::atomic<Workspace*> next = nullptr;  ///< another one of the same stream or graph
};

/// A workspace that its holder may enqueue launches with. What is given back may be handed to the next call at once,
/// so its holder has enqueued all of its launches by then. Move-only; must not outlive the pool.
class WorkspaceLease {
 public:
  explicit WorkspaceLease(Workspace& workspace) : workspace_(&workspace) {}
  WorkspaceLease(WorkspaceLease&& other) noexcept : workspace_(std::exchange(other.workspace_, nullptr)) {}
  WorkspaceLease& operator=(WorkspaceLease&&) = delete;
  ~WorkspaceLease() {
    if (workspace_) workspace_->is_taken.store(false, std::memory_order_release);
  }

  void* memory() const { return workspace_->memory; }

 private:
  Workspace* workspace_;
};

/// Hands out workspaces of kWorkspaceBytes, whose headers are zero when they are made. Each belongs to one stream, or
/// to one graph under construction, so that calls in different streams never share one; and of the calls that several
/// threads enqueue in one stream at once each gets another, so that no launch comes between the launches of a call and
/// writes to its partial results. A stream that one thread at a time uses has one workspace. They are kept until
/// recycle() or the end of the pool. Thread-safe; where a stream is known and has a free workspace, take() takes no
/// lock.
class WorkspacePool {
 public:
  /// Allocates `for_captures` workspaces that only captured graphs get and, if these are any, those of a few streams.
  WorkspacePool(std::shared_ptr<Device> device, int for_captures);

  /// A workspace of the stream. A stream that is being captured gets one for that graph from the reserve, where nothing
  /// may be allocated: throws Error(out_of_memory) when the reserve is used up.
  WorkspaceLease take(const StreamState& stream);

  /// From now on streams get the workspaces of others. Nothing that uses one may be in flight or being enqueued.
  /// Graphs keep theirs: they may be replayed.
  void recycle();

 private:
  struct Owner {
    std::uint64_t stream = 0;
    bool capturing = false;
    std::uint64_t number = 0;  ///< of the graph, or how often streams' workspaces were recycled before

    bool operator==(const Owner&) const = default;
    std::uint64_t bits() const { return stream ^ number << 16; }
  };

  Workspace& first_of(const Owner& owner, bool capturing);
  Workspace& following(Workspace& workspace, Workspace& first, bool capturing);
  Workspace& make(bool capturing);
  void allocate(int for_captures);

  std::shared_ptr<Device> device_;
  AppendOnlyMap<Owner, Workspace*> owners_;
  std::atomic<std::uint64_t> generation_ = 0;
  std::mutex mutex_;
  std::deque<Workspace> workspaces_;
  std::vector<DeviceBuffer> memory_;
  std::vector<Workspace*> of_streams_;  ///< in use by streams
  std::vector<Workspace*> free_;
  std::vector<Workspace*> free_for_captures_;
  int for_captures_;
};

}  // namespace hone
