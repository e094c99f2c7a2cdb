#include "runtime/device/host/guarded_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace hone {
namespace {

/// The patterns of any two numbers below 251 differ.
std::byte pattern_of(std::size_t number) { return static_cast<std::byte>((0xb5 + 37 * number) % 251); }

/// How far from it an access is one to this memory. That takes addresses, no memory; where those are limited
/// (`ulimit -v`) it is less.
[[maybe_unused]] constexpr std::size_t kGuardBytes = std::size_t{1} << 30, kLeastGuardBytes = std::size_t{1} << 20;

/// An index that wraps in 32 bits leads 2^31 elements away; buffers that are large enough for that have such a guard.
[[maybe_unused]] constexpr std::size_t kLargeBytes = std::size_t{1} << 31, kLargeGuardBytes = std::size_t{1} << 35;

[[maybe_unused]] std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

}  // namespace

#if HONE_ASAN || HONE_TSAN
GuardedMemory::GuardedMemory(std::size_t bytes, std::size_t pattern, Place)
    : bytes_(bytes), pattern_(pattern_of(pattern)) {
  void* pointer = nullptr;
  if (posix_memalign(&pointer, kAlignment, std::max<std::size_t>(bytes, 1)) != 0) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(pointer);
}

GuardedMemory::~GuardedMemory() { std::free(data_); }
#else
GuardedMemory::GuardedMemory(std::size_t bytes, std::size_t pattern, Place place)
    : bytes_(bytes), pattern_(pattern_of(pattern)) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t aligned = round_up(std::max<std::size_t>(bytes, 1), kAlignment);
  const std::size_t inside = round_up(aligned, page);
  const std::size_t most = bytes < kLargeBytes ? kGuardBytes : kLargeGuardBytes;
  if (aligned < bytes || inside + 2 * most < bytes) throw std::bad_alloc();
  void* mapped = MAP_FAILED;
  for (const std::size_t guard : {most, kLeastGuardBytes}) {
    guard_bytes_ = round_up(guard, page);
    mapped = mmap(nullptr, inside + 2 * guard_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped != MAP_FAILED) break;
  }
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  mapping_ = {static_cast<std::byte*>(mapped), inside + 2 * guard_bytes_};
  if (mprotect(mapping_.data() + guard_bytes_, inside, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping_.data(), mapping_.size());
    throw std::bad_alloc();
  }
  mapping_ = mapping_.subspan(guard_bytes_, inside);
  data_ = mapping_.data();
  if (place == Place::near_end) data_ += inside - aligned;
  if (place == Place::at_end) data_ += inside - bytes_;
  std::fill(mapping_.data(), data_, pattern_);
  std::fill(data_ + bytes_, mapping_.data() + inside, pattern_);
}

GuardedMemory::~GuardedMemory() {
  if (data_ == nullptr) return;
  munmap(mapping_.data() - guard_bytes_, mapping_.size() + 2 * guard_bytes_);
}
#endif

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, 0)),
      pattern_(other.pattern_),
      data_(std::exchange(other.data_, nullptr)),
      mapping_(std::exchange(other.mapping_, {})),
      guard_bytes_(other.guard_bytes_) {}

std::string GuardedMemory::overwritten() const {
  if (mapping_.empty()) return "";
  const auto differs = [this](std::byte found) { return found != pattern_; };
  std::byte* const end = mapping_.data() + mapping_.size();
  if (std::byte* const at = std::find_if(data_ + bytes_, end, differs); at != end) return place(at - data_);
  std::byte* const at = std::find_if(mapping_.data(), data_, differs);
  return at == data_ ? "" : place(at - data_);
}

std::string GuardedMemory::place_of(std::uintptr_t address) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(data_);
  const bool near = address + guard_bytes_ >= begin && address < begin + bytes_ + guard_bytes_;
  return near ? place(static_cast<std::ptrdiff_t>(address - begin)) : "";
}

std::string GuardedMemory::place(std::ptrdiff_t offset) const {
  const auto size = static_cast<std::ptrdiff_t>(bytes_);
  if (offset < 0) return fmt::format("at byte {}, before its beginning", offset);
  return fmt::format("at byte {}{}", offset, offset < size ? "" : ", behind its end");
}

}  // namespace hone
