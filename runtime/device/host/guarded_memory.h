// GuardedMemory: memory whose bounds are watched, for the buffers of a check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hone {

/// Aligned to kAlignment and ended by an inaccessible page; up to kAlignment − 1 bytes before that page and what is
/// before the memory hold a pattern, of which there are 251: a kernel that copies from beyond one memory to beyond
/// another one is seen where they differ. In builds with sanitizers it is an ordinary allocation of the exact size, which
/// they watch.
class GuardedMemory {
 public:
  static constexpr std::size_t kAlignment = 256;

  /// Throws std::bad_alloc.
  explicit GuardedMemory(std::size_t bytes, std::size_t pattern = 0);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

  /// "at byte 1024, behind its end", when the pattern around the memory was overwritten there; "" otherwise.
  std::string overwritten() const;

  /// The same of an address in or near the memory; "" when it is far away.
  std::string place_of(std::uintptr_t address) const;

 private:
  std::string place(std::ptrdiff_t offset) const;

  std::size_t bytes_;
  std::byte pattern_{};
  std::byte* data_ = nullptr;
  std::span<std::byte> mapping_;
};

}  // namespace hone
