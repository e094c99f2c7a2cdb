#include "runtime/dispatch/gather_buffers.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include <hone/error.h>

namespace hone {
namespace {

/// Blocks of single values of a thousand ranks.
constexpr std::size_t kLeastBytes = 64 * 1024;

std::size_t rounded_up(std::size_t bytes) { return std::max(kLeastBytes, std::bit_ceil(bytes)); }

}  // namespace

void GatherBuffers::bind(const std::shared_ptr<Device>& device) {
  const std::scoped_lock lock(mutex_);
  if (!device_) device_ = device;
  if (device_ != device && device_->name() != device->name())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the communicator was used with {} before, and the session is one of {}; make a "
                            "communicator for each device",
                            device_->name(), device->name()));
}

void* GatherBuffers::take(const StreamState& stream, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto is_mine = [&](const Owned& owned) {
    return owned.stream == stream.id && owned.capturing == stream.capturing &&
           (!stream.capturing || owned.graph == stream.capture_id);
  };
  const auto known = std::find_if(owned_.rbegin(), owned_.rend(), is_mine);
  if (known != owned_.rend() && known->memory.size_bytes() >= bytes) return known->memory.data();
  Owned owned{.stream = stream.id, .capturing = stream.capturing, .graph = stream.capture_id, .memory = {}};
  std::vector<DeviceBuffer>& reserved = reserved_[stream.capturing ? 1 : 0];
  const auto fits = std::find_if(reserved.begin(), reserved.end(),
                                 [&](const DeviceBuffer& buffer) { return buffer.size_bytes() >= bytes; });
  if (fits != reserved.end()) {
    owned.memory = std::move(*fits);
    reserved.erase(fits);
  } else if (stream.capturing) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("no buffer of {} bytes is left for the blocks of ranks in a captured graph, and nothing "
                            "can be allocated during capture; call prepare_all_reduce() with LaunchContext::graph "
                            "once for each graph, before the capture",
                            bytes));
  } else {
    owned.memory = DeviceBuffer(device_, rounded_up(bytes));
  }
  return owned_.emplace_back(std::move(owned)).memory.data();
}

void GatherBuffers::reserve(std::size_t bytes, bool for_capture) {
  const std::scoped_lock lock(mutex_);
  reserved_[for_capture ? 1 : 0].emplace_back(device_, rounded_up(bytes));
}

}  // namespace hone
