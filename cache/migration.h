// Migration: a file of an earlier schema version becomes one of ours.
#pragma once

#include <cstdint>
#include <filesystem>

#include "cache/connection.h"

namespace hone::cache {

/// Where the file at `path` is copied to before it is migrated from `version`: "<path>.version_1".
std::filesystem::path backup_path(const std::filesystem::path& path, std::int64_t version);

/// Copies the file to backup_path(), replacing an earlier copy at once or not at all, and then changes it. Every row is
/// kept, except those that refer to a row that damage has taken. Call inside a writing transaction, after
/// check_schema() returned `version`; nothing has happened until that transaction commits. Throws StoreError.
void migrate(Connection& connection, const std::filesystem::path& path, std::int64_t version);

/// Gives the file our schema, whatever it had: nothing, an earlier version or ours. Call inside a writing transaction.
/// Throws StoreError, as check_schema() does.
void bring_up_to_date(Connection& connection, const std::filesystem::path& path);

}  // namespace hone::cache
