#include "benchmarks/common/input_arena.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "benchmarks/common/numbers.h"

namespace hone::benchmarks {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kPeriod = 1048573;  // the largest prime below 2^20: no multiple of any tile

/// Room for the array, wherever in the first 256 bytes it begins.
std::size_t stride_of(DType dtype, std::int64_t n) {
  const std::size_t bytes = static_cast<std::size_t>(n) * info(dtype).size_bytes + kAlignment - info(dtype).size_bytes;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::vector<std::byte> pattern_of(DType dtype) {
  const std::size_t element_bytes = info(dtype).size_bytes;
  std::vector<std::byte> pattern(kPeriod * element_bytes);
  std::mt19937_64 random(12345);
  std::uniform_real_distribution<float> around_one(0.5, 1.5);
  for (std::size_t i = 0; i < kPeriod; ++i) {
    std::byte* const element = pattern.data() + i * element_bytes;
    if (info(dtype).is_floating()) {
      encode(dtype, around_one(random), element);
    } else {
      std::uint64_t bits = random();
      if (dtype == DType::boolean) bits &= 1;
      std::memcpy(element, &bits, element_bytes);
    }
  }
  return pattern;
}

}  // namespace

InputArena::InputArena(std::shared_ptr<Device> device, std::size_t bytes)
    : device_(device), memory_(device, std::max(bytes, kPeriod * sizeof(double))) {}

std::size_t InputArena::bytes_for(DType dtype, std::int64_t n, int inputs) {
  return static_cast<std::size_t>(inputs) * stride_of(dtype, n);
}

void InputArena::fill(DType dtype, Stream stream) {
  pattern_ = pattern_of(dtype);
  values_ = decode(dtype, pattern_);
  auto* const begin = memory_.as<std::byte>();
  std::size_t filled = std::min(pattern_.size(), memory_.size_bytes());
  device_->copy_to_device(begin, pattern_.data(), filled, stream);
  // Doubling keeps the period, since every copy but the last is a whole number of patterns long.
  while (filled < memory_.size_bytes()) {
    const std::size_t more = std::min(filled, memory_.size_bytes() - filled);
    device_->copy_on_device(begin + filled, begin, more, stream);
    filled += more;
  }
  device_->synchronize(stream);
}

std::vector<const void*> InputArena::inputs(const InputLayout& layout) const {
  std::vector<const void*> inputs;
  for (int copy = 0; copy < layout.copies; ++copy) inputs.push_back(at(layout, copy, 0));
  return inputs;
}

std::size_t InputArena::readable_bytes(const InputLayout& layout, std::int64_t bytes) const {
  const auto* const last = static_cast<const std::byte*>(at(layout, layout.copies - 1, 0));
  const auto left = static_cast<std::size_t>(memory_.as<std::byte>() + memory_.size_bytes() - last);
  return std::min(static_cast<std::size_t>(bytes), left);
}

long double InputArena::sum_of_first(std::int64_t n) const {
  const auto count = static_cast<std::int64_t>(values_.size());
  const auto sum = [&](std::int64_t elements) {
    return std::accumulate(values_.begin(), values_.begin() + elements, 0.0L);
  };
  return static_cast<long double>(n / count) * sum(count) + sum(n % count);
}

long double InputArena::max_of_first(std::int64_t n) const {
  return *std::max_element(values_.begin(), values_.begin() + std::min<std::int64_t>(n, std::ssize(values_)));
}

long double InputArena::value_at(const void* address) const {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory_.as<std::byte>());
  return values_[offset % pattern_.size() * values_.size() / pattern_.size()];
}

InputLayout InputArena::layout(DType dtype, std::int64_t n, int inputs, int offset, int most_copies) const {
  InputLayout layout{.stride_bytes = stride_of(dtype, n),
                     .offset_bytes = static_cast<std::size_t>(offset) * info(dtype).size_bytes,
                     .inputs = inputs,
                     .copies = 1};
  const std::size_t fit = memory_.size_bytes() / (layout.stride_bytes * static_cast<std::size_t>(inputs));
  layout.copies = static_cast<int>(std::clamp<std::size_t>(fit, 1, static_cast<std::size_t>(most_copies)));
  return layout;
}

void* InputArena::at(const InputLayout& layout, int turn, int input) const {
  const auto index = static_cast<std::size_t>(turn % layout.copies * layout.inputs + input);
  return memory_.as<std::byte>() + index * layout.stride_bytes + layout.offset_bytes;
}

}  // namespace hone::benchmarks
