// The schema of the cache file: its tables in every version, and the check that a file has exactly these.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "cache/connection.h"

namespace hone::cache {

/// "Hone" in ASCII, in the header of the file.
inline constexpr std::int64_t kApplicationId = 0x486f6e65;

/// Raise it with every change to schema_objects(), and teach cache/migration.cpp the step.
inline constexpr std::int64_t kSchemaVersion = 9;

/// The oldest version whose readers can read our files: they find every table that they know, unchanged, and its words
/// mean to them what they mean to us. Stored in each file as the property `reads_from`.
inline constexpr std::int64_t kReadsFrom = 8;

/// check_schema() of a file without any content: a cache without winners.
inline constexpr std::int64_t kEmptyFile = 0;

/// One table, index or view, with the statement that makes it as SQLite keeps it in the file.
struct SchemaObject {
  std::string_view type;
  std::string_view name;
  std::string_view sql;
};

/// In the order in which they are made; nothing for a version that there never was.
std::span<const SchemaObject> schema_objects(std::int64_t version = kSchemaVersion);

/// The version of the file, or kEmptyFile; `connection` knows it from here on. Must come before any other query:
/// nothing of a file is trusted until its schema is known to be one of ours, statement by statement. To a reader a
/// newer version is good too when the file says so (`reads_from`), has every table of ours unchanged and only further
/// tables, indexes and views.
///
/// Throws StoreError (not_a_database, foreign, newer, corrupt); `path` is for the message.
std::int64_t check_schema(Connection& connection, const std::filesystem::path& path, Access access);

/// Makes what schema_objects() has and the file lacks, and gives it our version. Call inside a writing transaction.
void create_schema(Connection& connection);

}  // namespace hone::cache
