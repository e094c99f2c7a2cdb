// GuardedMemory: memory whose bounds are watched, for the buffers of a check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hone {

/// Surrounded by inaccessible pages; where it does not reach one, a pattern lies between, of which there are 251: a
/// kernel that copies from beyond one memory to beyond another one is seen where they differ. In builds with sanitizers
/// it is an ordinary allocation of the exact size, aligned to kAlignment, which they watch.
class GuardedMemory {
 public:
  static constexpr std::size_t kAlignment = 256;

  enum class Place {
    near_end,  ///< aligned to kAlignment; up to kAlignment − 1 bytes before an inaccessible page
    at_end,    ///< ends at an inaccessible page; aligned to the largest power of two that divides its size
    at_begin,  ///< aligned to a page, and begins behind an inaccessible one
  };

  /// Throws std::bad_alloc.
  explicit GuardedMemory(std::size_t bytes, std::size_t pattern = 0, Place place = Place::near_end);
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
  std::span<std::byte> mapping_;  ///< what can be accessed
  std::size_t guard_bytes_ = 0;   ///< on either side of it, inaccessible
};

}  // namespace hone
