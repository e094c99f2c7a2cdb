// The schema of the cache file: its tables, and the check that a file has exactly these.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "cache/connection.h"

namespace hone::cache {

/// "Hone" in ASCII, in the header of the file.
inline constexpr std::int64_t kApplicationId = 0x486f6e65;

/// Raise it with every change to schema_objects().
inline constexpr std::int64_t kSchemaVersion = 1;

/// One table, index or view, with the statement that makes it as SQLite keeps it in the file.
struct SchemaObject {
  std::string_view type;
  std::string_view name;
  std::string_view sql;
};

/// In the order in which they are made.
std::span<const SchemaObject> schema_objects();

enum class SchemaState {
  empty,    ///< a file without any content: a cache without winners
  current,  ///< exactly schema_objects()
};

/// Must come before any other query: nothing of a file is trusted until its schema is known to be ours. Throws
/// StoreError (not_a_database, foreign, newer, corrupt); `path` is for the message.
SchemaState check_schema(Connection& connection, const std::filesystem::path& path);

/// Turns an empty file into a cache without winners. Call inside a writing transaction.
void create_schema(Connection& connection);

}  // namespace hone::cache
