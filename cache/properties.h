// Properties of a cache file: numbers by name that hold for all of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cache/connection.h"

namespace hone::cache {

/// The oldest schema version whose readers can read the file.
inline constexpr std::string_view kReadsFromProperty = "reads_from";

/// The size in bytes above which a publication evicts; none: no limit of its own.
inline constexpr std::string_view kMaxBytesProperty = "max_bytes";

/// nullopt when there is none, or when its digest does not hold. Throws StoreError.
std::optional<std::int64_t> read_property(Connection& connection, std::string_view name);

/// Call inside a writing transaction. Throws StoreError.
void write_property(Connection& connection, std::string_view name, std::int64_t value);

}  // namespace hone::cache
