#include "runtime/measure/canaries.h"

#include <array>
#include <utility>

#include <fmt/format.h>

namespace hone {
namespace {

constexpr std::size_t kPatterns = 64;

/// 0xff: a NaN as any float, −1 as an integer; the next few are NaNs as halves and huge as floats.
constexpr std::array<std::byte, kPatterns> kBytesOfPatterns = [] {
  std::array<std::byte, kPatterns> bytes{};
  for (std::size_t i = 0; i < kPatterns; ++i) bytes[i] = static_cast<std::byte>(0xff - i);
  return bytes;
}();

}  // namespace

DeviceBuffer Canaries::patterns(const std::shared_ptr<Device>& device, Stream stream) {
  DeviceBuffer patterns(device, kPatterns);
  device->copy_to_device(patterns.data(), kBytesOfPatterns.data(), kPatterns, stream);
  return patterns;
}

void Canaries::add(std::string name, std::byte* array, std::size_t size_bytes) {
  arrays_.push_back({std::move(name), array, size_bytes, arrays_.size() % kPatterns});
}

void Canaries::set() {
  for (const Guarded& guarded : arrays_) {
    const int value = std::to_integer<int>(kBytesOfPatterns[guarded.pattern]);
    device_.fill_bytes(guarded.array - kBytes, value, kBytes, stream_);
    device_.fill_bytes(guarded.array + guarded.size_bytes, value, kBytes, stream_);
  }
}

void Canaries::append_runs(std::vector<RepeatedBytes>& runs) const {
  for (const Guarded& guarded : arrays_)
    for (const std::byte* const side : {guarded.array + guarded.size_bytes, guarded.array - kBytes})
      runs.push_back({.found = side,
                      .bytes = kBytes,
                      .expected = std::span(kBytesOfPatterns).subspan(guarded.pattern, 1),
                      .expected_on_device = patterns_ + guarded.pattern});
}

std::string Canaries::overwritten(std::span<const std::size_t> differences) const {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const Guarded& guarded = arrays_[i];
    const std::size_t behind = differences[2 * i], before = differences[2 * i + 1];
    if (behind < kBytes)
      return fmt::format("wrote at byte {} of '{}', which has {} bytes", guarded.size_bytes + behind, guarded.name,
                         guarded.size_bytes);
    if (before < kBytes) return fmt::format("wrote {} bytes before '{}' begins", kBytes - before, guarded.name);
  }
  return "";
}

}  // namespace hone
