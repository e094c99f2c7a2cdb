#include "runtime/dispatch/workspace_pool.h"

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/kernel_family.h>
#include <hone/own_stream.h>

namespace hone {
namespace {

constexpr int kStreamsPerAllocation = 8;

}  // namespace

DeviceBuffer zeroed_buffer(const std::shared_ptr<Device>& device, std::size_t bytes) {
  DeviceBuffer buffer(device, bytes);
  const OwnStream stream(*device);
  device->fill_bytes(buffer.data(), 0, bytes, stream.get());
  device->synchronize(stream.get());
  return buffer;
}

WorkspacePool::WorkspacePool(std::shared_ptr<Device> device, int for_captures)
    : device_(std::move(device)), for_captures_(for_captures) {
  allocate(free_for_captures_, for_captures);
}

Workspace& WorkspacePool::of(const StreamState& stream) {
  const Owner owner{.stream = stream.id, .capture = stream.capturing ? stream.capture_id : 0};
  if (Workspace* const* known = owners_.find(owner)) return **known;
  const std::scoped_lock lock(mutex_);
  if (Workspace* const* known = owners_.find(owner)) return **known;
  void* const memory = take(stream.capturing);
  Workspace& workspace = workspaces_.emplace_back();
  workspace.memory = memory;
  owners_.insert(owner, &workspace);
  return workspace;
}

void* WorkspacePool::take(bool capturing) {
  std::vector<void*>& free = capturing ? free_for_captures_ : free_;
  if (free.empty() && capturing)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("the {} workspaces set aside for captured graphs are taken and nothing can be allocated "
                            "during capture; launch through a Plan of your own, or raise "
                            "SessionOptions::capture_workspaces",
                            for_captures_));
  if (free.empty()) allocate(free, kStreamsPerAllocation);
  void* workspace = free.back();
  free.pop_back();
  return workspace;
}

void WorkspacePool::allocate(std::vector<void*>& free, int count) {
  if (count == 0) return;
  DeviceBuffer memory = zeroed_buffer(device_, static_cast<std::size_t>(count) * kWorkspaceBytes);
  for (int i = count - 1; i >= 0; --i)
    free.push_back(memory.as<std::byte>() + static_cast<std::size_t>(i) * kWorkspaceBytes);
  memory_.push_back(std::move(memory));
}

}  // namespace hone
