// pack(), unpack(): bytes made smaller for the file, as zlib does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hone::cache {

/// Bytes as a file has them, in the way of SQLite's archives: whoever has zlib, or sqlar_uncompress() of the sqlite3
/// shell, can read them.
struct Packed {
  std::vector<std::byte> data;
  std::int64_t bytes = 0;  ///< before packing. As many as in `data`, or 0, if that is not packed
};

/// Leaves alone what would hardly become smaller.
Packed pack(std::vector<std::byte> bytes);

/// nullopt if `packed` cannot have come from pack(). Needs no more memory than its data can grow to.
std::optional<std::vector<std::byte>> unpack(Packed packed);

}  // namespace hone::cache
