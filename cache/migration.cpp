#include "cache/migration.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "cache/place.h"
#include "cache/schema.h"

namespace hone::cache {
namespace {

/// From one earlier version to ours. A table whose statement changed has to be made anew, since a file keeps the text
/// that each was made with. Its rows, and those of the tables that refer to it, wait meanwhile in temporary tables, or
/// under another name. A column that is renamed leaves the text as ours has it, so that its table may stay.
struct Migration {
  std::int64_t from;
  std::span<const std::string_view> before;  ///< takes away what the new version has otherwise
  std::span<const std::string_view> after;   ///< fills the new tables
};

// Version 4 gave binaries their entries.
constexpr std::string_view kSetBinariesAside = "ALTER TABLE binary RENAME TO old_binary";
constexpr std::string_view kTakeBinaries =
    "INSERT OR IGNORE INTO binary (digest, format, architecture, code) SELECT * FROM old_binary";
constexpr std::string_view kDropOldBinaries = "DROP TABLE old_binary";

constexpr std::array<std::string_view, 10> kBefore1{
    "CREATE TEMP TABLE old_winner AS SELECT * FROM main.winner",
    "CREATE TEMP TABLE old_tuning AS SELECT * FROM main.tuning",
    "CREATE TEMP TABLE old_trial AS SELECT * FROM main.trial",
    "CREATE TEMP TABLE old_sequence AS SELECT seq FROM main.sqlite_sequence WHERE name = 'winner'",
    "DROP VIEW winners",
    "DROP VIEW trials",
    "DROP TABLE trial",
    "DROP TABLE tuning",
    "DROP TABLE winner",
    kSetBinariesAside,
};

// A row that breaks a constraint now did so before, by damage: it is left out, and the rest is kept.
constexpr std::array<std::string_view, 11> kAfter1{
    "INSERT OR IGNORE INTO winner SELECT * FROM old_winner"
    " WHERE device IN (SELECT id FROM device) AND toolchain IN (SELECT id FROM toolchain)",
    "INSERT OR IGNORE INTO tuning SELECT * FROM old_tuning WHERE winner IN (SELECT id FROM winner)",
    "INSERT OR IGNORE INTO trial SELECT * FROM old_trial WHERE winner IN (SELECT winner FROM tuning)",
    // Ids of winners are never used again, those of deleted ones included.
    "DELETE FROM sqlite_sequence WHERE name = 'winner'",
    "INSERT INTO sqlite_sequence (name, seq) SELECT 'winner', seq FROM old_sequence",
    "DROP TABLE temp.old_winner",
    "DROP TABLE temp.old_tuning",
    "DROP TABLE temp.old_trial",
    "DROP TABLE temp.old_sequence",
    kTakeBinaries,
    kDropOldBinaries,
};

/// Versions 2 and 3 differ in the view `winners` alone.
constexpr std::array<std::string_view, 6> kBefore2{
    "DROP VIEW winners",
    "DROP VIEW trials",
    "DROP VIEW binaries",
    "ALTER TABLE winner RENAME COLUMN variant TO policy",
    "ALTER TABLE trial RENAME COLUMN variant TO policy",
    kSetBinariesAside,
};

constexpr std::array<std::string_view, 2> kAfter2{kTakeBinaries, kDropOldBinaries};

constexpr std::array<Migration, 4> kMigrations{
    {{1, kBefore1, kAfter1}, {2, kBefore2, kAfter2}, {3, kBefore2, kAfter2}, {4, {}, {}}}};

/// Up to version 4 the numerics `fast` were called `reproducible`. Digests cover the first word, so they hold.
constexpr std::string_view kRenameNumerics =
    "UPDATE OR IGNORE {} SET numerics = 'fast' || substr(numerics, 13) WHERE substr(numerics, 1, 12) = 'reproducible'";

}  // namespace

std::filesystem::path backup_path(const std::filesystem::path& path, std::int64_t version) {
  std::filesystem::path backup = path;
  backup += ".version_" + std::to_string(version);
  return backup;
}

void migrate(Connection& connection, const std::filesystem::path& path, std::int64_t version) {
  replace_file(backup_path(path, version), connection.content());
  for (const Migration& migration : kMigrations) {
    if (migration.from != version) continue;
    for (const std::string_view sql : migration.before) connection.execute(sql);
    create_schema(connection);
    for (const std::string_view sql : migration.after) connection.execute(sql);
    for (const std::string_view table : {"winner", "missed", "claim"})
      connection.execute(fmt::format(kRenameNumerics, table));
  }
  check_schema(connection, path, Access::write);
}

void bring_up_to_date(Connection& connection, const std::filesystem::path& path) {
  const std::int64_t version = check_schema(connection, path, Access::write);
  if (version == kEmptyFile) create_schema(connection);
  if (version != kEmptyFile && version != kSchemaVersion) migrate(connection, path, version);
}

}  // namespace hone::cache
