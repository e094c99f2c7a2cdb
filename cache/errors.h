// store_error(): one sentence per StoreFault, and which SQLite result is which fault.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "cache/store.h"

struct sqlite3;

namespace hone::cache {

/// "the cache <path> <what is wrong>: <detail>; <what to do>". `advice`: what to do instead of the usual for the fault.
StoreError store_error(const std::filesystem::path& path, StoreFault fault, std::string_view detail,
                       std::string_view advice = "");

/// The error that the last call on `connection` left behind (nullptr: it could not even be allocated).
StoreError sqlite_error(const std::filesystem::path& path, sqlite3* connection);

/// Throws StoreError(corrupt) if the file has winners, but none that is intact: a copy of it would be empty, and might
/// replace a good one.
void refuse_all_damaged(const std::filesystem::path& path, std::int64_t intact, std::int64_t damaged);

}  // namespace hone::cache
