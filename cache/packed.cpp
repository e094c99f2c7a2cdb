#include "cache/packed.h"

#include <zlib.h>

#include <new>
#include <utility>

namespace hone::cache {
namespace {

/// Below that, little is won, and setting up zlib takes longer than all the rest of writing a row.
constexpr std::size_t kFewestBytes = 1024;

/// Deflated data cannot grow more than so many times.
constexpr std::int64_t kMostGrowth = 1032;

Bytef* zlib_bytes(std::vector<std::byte>& bytes) { return reinterpret_cast<Bytef*>(bytes.data()); }

}  // namespace

Packed pack(std::vector<std::byte> bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (bytes.size() < kFewestBytes) return {.data = std::move(bytes), .bytes = size};
  uLongf packed_size = compressBound(static_cast<uLong>(bytes.size()));
  std::vector<std::byte> packed(packed_size);
  const int code = compress(zlib_bytes(packed), &packed_size, zlib_bytes(bytes), static_cast<uLong>(bytes.size()));
  if (code != Z_OK) throw std::bad_alloc();  // the only thing that can be wrong: there was room
  if (packed_size >= bytes.size()) return {.data = std::move(bytes), .bytes = size};
  packed.resize(packed_size);
  packed.shrink_to_fit();
  return {.data = std::move(packed), .bytes = size};
}

std::optional<std::vector<std::byte>> unpack(Packed packed) {
  const auto size = static_cast<std::int64_t>(packed.data.size());
  if (packed.bytes == 0 || packed.bytes == size) return std::move(packed.data);
  if (packed.bytes < size || packed.bytes / kMostGrowth > size) return std::nullopt;
  std::vector<std::byte> bytes(static_cast<std::size_t>(packed.bytes));
  auto unpacked_size = static_cast<uLongf>(bytes.size());
  const int code =
      uncompress(zlib_bytes(bytes), &unpacked_size, zlib_bytes(packed.data), static_cast<uLong>(packed.data.size()));
  if (code == Z_MEM_ERROR) throw std::bad_alloc();
  if (code != Z_OK || unpacked_size != bytes.size()) return std::nullopt;
  return bytes;
}

}  // namespace hone::cache
