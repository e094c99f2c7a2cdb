#include "runtime/measure/canaries.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace hone {

void Canaries::add(std::string name, std::byte* array, std::size_t size_bytes) {
  // 0xff: a NaN as any float, −1 as an integer; the next few are NaNs as halves and huge as floats.
  const auto pattern = static_cast<std::byte>(0xff - arrays_.size() % 64);
  arrays_.push_back({std::move(name), array, size_bytes, pattern});
}

void Canaries::set() {
  for (const Guarded& guarded : arrays_) {
    const int value = std::to_integer<int>(guarded.pattern);
    device_.fill_bytes(guarded.array - kBytes, value, kBytes, stream_);
    device_.fill_bytes(guarded.array + guarded.size_bytes, value, kBytes, stream_);
  }
}

std::string Canaries::overwritten() {
  for (const Guarded& guarded : arrays_) {
    const std::size_t behind = first_difference(guarded.array + guarded.size_bytes, guarded.pattern);
    if (behind < kBytes)
      return fmt::format("wrote at byte {} of '{}', which has {} bytes", guarded.size_bytes + behind, guarded.name,
                         guarded.size_bytes);
    const std::size_t before = first_difference(guarded.array - kBytes, guarded.pattern);
    if (before < kBytes) return fmt::format("wrote {} bytes before '{}' begins", kBytes - before, guarded.name);
  }
  return "";
}

std::size_t Canaries::first_difference(const std::byte* side, std::byte pattern) {
  found_.resize(kBytes);
  device_.copy_to_host(found_.data(), side, kBytes, stream_);
  device_.synchronize(stream_);
  // A memcmp with itself, shifted by one: in a debug build, a loop over the bytes takes longer than a small kernel.
  if (found_[0] == pattern && std::memcmp(found_.data(), found_.data() + 1, kBytes - 1) == 0) return kBytes;
  const auto at = std::find_if(found_.begin(), found_.end(), [pattern](std::byte byte) { return byte != pattern; });
  return static_cast<std::size_t>(at - found_.begin());
}

}  // namespace hone
