#include "runtime/device/host/host_streams.h"

namespace hone {
namespace {

/// Handles look like addresses, so that none is nullptr or one of CUDA's special handles.
constexpr std::uintptr_t kHandleStep = 64;

}  // namespace

Stream HostStreams::create() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) {
    idle_.reserve(created_ + 1);  // room for the way back is made here, where failing is allowed
    return reinterpret_cast<Stream>(++created_ * kHandleStep);
  }
  const Stream stream = idle_.back();
  idle_.pop_back();
  return stream;
}

void HostStreams::destroy(Stream stream) noexcept {
  const auto number = reinterpret_cast<std::uintptr_t>(stream) / kHandleStep;
  const std::lock_guard lock(mutex_);
  const bool is_ours = number >= 1 && number <= created_;
  if (is_ours && idle_.size() < idle_.capacity()) idle_.push_back(stream);
}

std::unique_lock<std::mutex> HostStreams::wait_for_turn(Stream stream) {
  return std::unique_lock(turns_[reinterpret_cast<std::uintptr_t>(stream) / kHandleStep % kTurns]);
}

}  // namespace hone
