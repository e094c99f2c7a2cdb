#include "runtime/dispatch/workspace_pool.h"

#include <string>
#include <thread>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/kernel_family.h>
#include <hone/own_stream.h>

#include "runtime/trace/trace_range.h"

namespace hone {
namespace {

constexpr int kStreamsPerAllocation = 8;

DeviceBuffer allocate_workspaces(const std::shared_ptr<Device>& device, int count) {
  const TraceRange traced([] { return std::string("allocate"); });
  return DeviceBuffer(device, static_cast<std::size_t>(count) * kWorkspaceBytes);
}

}  // namespace

DeviceBuffer make_workspaces(const std::shared_ptr<Device>& device, int count) {
  const TraceRange traced([] { return std::string("workspaces"); });
  DeviceBuffer buffer = allocate_workspaces(device, count);
  const OwnStream stream(*device);
  for (int i = 0; i < count; ++i)
    device->fill_bytes(buffer.as<std::byte>() + static_cast<std::size_t>(i) * kWorkspaceBytes, 0, kWorkspaceHeaderBytes,
                       stream.get());
  device->synchronize(stream.get());
  return buffer;
}

WorkspacePool::WorkspacePool(std::shared_ptr<Device> device, int for_captures)
    : device_(std::move(device)), for_captures_(for_captures) {
  // Workspaces of a few streams come along: nearly every session needs one, and one allocation is cheaper than two.
  if (for_captures > 0) allocate(for_captures);
}

WorkspaceLease WorkspacePool::take(const StreamState& stream) {
  const Owner owner = stream.capturing
                          ? Owner{.stream = stream.id, .capturing = true, .number = stream.capture_id}
                          : Owner{.stream = stream.id, .number = generation_.load(std::memory_order_relaxed)};
  Workspace* const* const known = owners_.find(owner);
  Workspace& first = known ? **known : first_of(owner, stream.capturing);
  Workspace* workspace = &first;
  while (workspace->is_taken.exchange(true, std::memory_order_acquire)) {
    Workspace* const next = workspace->next.load(std::memory_order_acquire);
    workspace = next ? next : &following(*workspace, first, stream.capturing);
  }
  return WorkspaceLease(*workspace);
}

void WorkspacePool::recycle() {
  const std::scoped_lock lock(mutex_);
  for (Workspace* const workspace : of_streams_) {
    workspace->next.store(nullptr, std::memory_order_relaxed);
    free_.push_back(workspace);
  }
  of_streams_.clear();
  generation_.fetch_add(1, std::memory_order_relaxed);
}

Workspace& WorkspacePool::first_of(const Owner& owner, bool capturing) {
  const std::scoped_lock lock(mutex_);
  if (Workspace* const* known = owners_.find(owner)) return **known;
  return *owners_.insert(owner, &make(capturing));
}

/// The one to try after `workspace`, the last of those that begin with `first`: a new one. A graph whose reserve is
/// used up has to wait until another thread has enqueued its call.
Workspace& WorkspacePool::following(Workspace& workspace, Workspace& first, bool capturing) {
  const std::scoped_lock lock(mutex_);
  if (Workspace* const next = workspace.next.load(std::memory_order_relaxed)) return *next;
  if (capturing && free_for_captures_.empty()) {
    std::this_thread::yield();
    return first;
  }
  Workspace& added = make(capturing);
  workspace.next.store(&added, std::memory_order_release);
  return added;
}

Workspace& WorkspacePool::make(bool capturing) {
  std::vector<Workspace*>& free = capturing ? free_for_captures_ : free_;
  if (free.empty() && capturing)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("the {} workspaces set aside for captured graphs are taken and nothing can be allocated "
                            "during capture; launch through a Plan of your own, or raise "
                            "SessionOptions::capture_workspaces",
                            for_captures_));
  if (free.empty()) allocate(0);
  Workspace& workspace = *free.back();
  if (!capturing) of_streams_.push_back(&workspace);
  free.pop_back();
  return workspace;
}

/// Allocates so many, and those of a few streams.
void WorkspacePool::allocate(int for_captures) {
  const int count = for_captures + kStreamsPerAllocation;
  DeviceBuffer memory = make_workspaces(device_, count);
  for (int i = count - 1; i >= 0; --i) {
    Workspace& workspace = workspaces_.emplace_back();
    workspace.memory = memory.as<std::byte>() + static_cast<std::size_t>(i) * kWorkspaceBytes;
    (i < for_captures ? free_for_captures_ : free_).push_back(&workspace);
  }
  memory_.push_back(std::move(memory));
}

}  // namespace hone
