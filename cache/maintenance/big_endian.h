// big_endian(): numbers as SQLite's file format has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hone::cache {

/// Reads a number of at most 8 bytes, the highest first.
inline std::uint64_t big_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<std::uint64_t>(byte);
  return value;
}

}  // namespace hone::cache
