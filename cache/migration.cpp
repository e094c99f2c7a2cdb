#include "cache/migration.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cache/packed.h"
#include "cache/packed_trials.h"
#include "cache/place.h"
#include "cache/row_sql.h"
#include "cache/schema.h"

namespace hone::cache {
namespace {

/// A statement for files of some earlier versions. A table whose statement changed has to be made anew, since a file
/// keeps the text that each was made with: its rows, and those of the tables that refer to it, wait meanwhile in
/// temporary tables, those of binaries under another name.
struct Step {
  std::int64_t first;  ///< of the versions
  std::int64_t last;
  std::string_view sql;
};

// Take away what the new version has otherwise. Version 2 added usage, misses and claims, version 4 gave binaries their
// entries, version 6 winners an objective and trials their energy, version 7 winners their lender and trials their
// sequence, version 8 packs code, and the trials of a tuning, version 9 added limits.
constexpr std::array<Step, 20> kBefore{{
    {1, 6, "CREATE TEMP TABLE old_winner AS SELECT * FROM main.winner"},
    {1, 7, "CREATE TEMP TABLE old_tuning AS SELECT * FROM main.tuning"},
    {1, 7, "CREATE TEMP TABLE old_trial AS SELECT * FROM main.trial"},
    {1, 7, "CREATE INDEX temp.old_trial_winner ON old_trial (winner, rank)"},
    {2, 6, "CREATE TEMP TABLE old_usage AS SELECT * FROM main.usage"},
    {2, 5, "CREATE TEMP TABLE old_missed AS SELECT * FROM main.missed"},
    {2, 5, "CREATE TEMP TABLE old_claim AS SELECT * FROM main.claim"},
    {1, 6, "CREATE TEMP TABLE old_sequence AS SELECT seq FROM main.sqlite_sequence WHERE name = 'winner'"},
    {1, 7, "DROP VIEW winners"},
    {1, 7, "DROP VIEW trials"},
    {2, 5, "DROP VIEW misses"},
    {2, 5, "DROP VIEW claims"},
    {2, 7, "DROP VIEW binaries"},  // it names the table that gets another name
    {2, 5, "DROP TABLE claim"},
    {2, 5, "DROP TABLE missed"},
    {2, 6, "DROP TABLE usage"},
    {1, 7, "DROP TABLE trial"},
    {1, 7, "DROP TABLE tuning"},
    {1, 6, "DROP TABLE winner"},
    {1, 7, "ALTER TABLE binary RENAME TO old_binary"},
}};

// Fill the new tables. A row that breaks a constraint now did so before, by damage: it is left out, and the rest is
// kept.
constexpr std::array<Step, 9> kAfter{{
    {1, 5, "INSERT OR IGNORE INTO winner SELECT *, 'time', '' FROM old_winner"
           " WHERE device IN (SELECT id FROM device) AND toolchain IN (SELECT id FROM toolchain)"},
    {6, 6, "INSERT OR IGNORE INTO winner SELECT *, '' FROM old_winner"
           " WHERE device IN (SELECT id FROM device) AND toolchain IN (SELECT id FROM toolchain)"},
    {1, 5, "INSERT OR IGNORE INTO tuning (winner, started_at, compile_ms, measure_ms, budget_spent, digest)"
           " SELECT * FROM old_tuning WHERE winner IN (SELECT id FROM winner)"},
    {6, 7, "INSERT OR IGNORE INTO tuning (winner, started_at, compile_ms, measure_ms, budget_spent, digest,"
           " power_limit_w) SELECT * FROM old_tuning WHERE winner IN (SELECT id FROM winner)"},
    {2, 6, "INSERT OR IGNORE INTO usage SELECT * FROM old_usage WHERE winner IN (SELECT id FROM winner)"},
    {2, 5, "INSERT OR IGNORE INTO missed (device, toolchain, family, operation, dtype, numerics, launch_context,"
           " alignment, first0, last0, first1, last1, first2, last2, driver, reason, extent0, extent1, extent2,"
           " bytes_moved, weight, missed_at) SELECT * FROM old_missed"
           " WHERE device IN (SELECT id FROM device) AND toolchain IN (SELECT id FROM toolchain)"},
    {2, 5, "INSERT OR IGNORE INTO claim (device, toolchain, family, operation, dtype, numerics, launch_context,"
           " alignment, first0, last0, first1, last1, first2, last2, owner, process, taken_at_ms, expires_at_ms)"
           " SELECT * FROM old_claim"
           " WHERE device IN (SELECT id FROM device) AND toolchain IN (SELECT id FROM toolchain)"},
    // Ids of winners are never used again, those of deleted ones included.
    {1, 6, "DELETE FROM sqlite_sequence WHERE name = 'winner'"},
    {1, 6, "INSERT INTO sqlite_sequence (name, seq) SELECT 'winner', seq FROM old_sequence"},
}};

constexpr std::array<Step, 8> kLast{{
    {1, 6, "DROP TABLE temp.old_winner"},
    {1, 7, "DROP TABLE temp.old_tuning"},
    {1, 7, "DROP TABLE temp.old_trial"},
    {2, 6, "DROP TABLE temp.old_usage"},
    {2, 5, "DROP TABLE temp.old_missed"},
    {2, 5, "DROP TABLE temp.old_claim"},
    {1, 6, "DROP TABLE temp.old_sequence"},
    {1, 7, "DROP TABLE old_binary"},
}};

void execute(Connection& connection, std::span<const Step> steps, std::int64_t version) {
  for (const Step& step : steps)
    if (step.first <= version && version <= step.last) connection.execute(step.sql);
}

/// Up to version 4 the numerics `fast` were called `reproducible`. Digests cover the first word, so they hold.
constexpr std::string_view kRenameNumerics =
    "UPDATE OR IGNORE {} SET numerics = 'fast' || substr(numerics, 13) WHERE substr(numerics, 1, 12) = 'reproducible'";

/// Packs the code of binaries; a damaged row stays what it is.
void move_binaries(Connection& connection, std::int64_t version) {
  Statement rows = connection.prepare(fmt::format("SELECT digest, format, architecture, code, {} FROM old_binary",
                                                  stored_name("entries", version)));
  Statement insert = connection.prepare(
      "INSERT OR IGNORE INTO binary (digest, format, architecture, entries, bytes, code) VALUES (?, ?, ?, ?, ?, ?)");
  while (rows.step()) {
    std::string digest;
    BinaryRecord binary;
    rows.read(digest);
    each_field(binary, Reader{rows});
    const Packed code = pack(std::move(binary.code));
    insert.bind(digest).bind(binary.format).bind(binary.architecture).bind(binary.entries).bind(code.bytes);
    insert.bind(std::span(code.data)).run();
  }
}

}  // namespace

std::filesystem::path backup_path(const std::filesystem::path& path, std::int64_t version) {
  std::filesystem::path backup = path;
  backup += ".version_" + std::to_string(version);
  return backup;
}

void migrate(Connection& connection, const std::filesystem::path& path, std::int64_t version) {
  connection.lift_deadline();  // packing a file of 100 MiB takes seconds
  replace_file(backup_path(path, version), connection.content());
  execute(connection, kBefore, version);
  create_schema(connection);
  execute(connection, kAfter, version);
  if (version < 8) pack_trial_rows(connection, "old_trial", version);
  if (version < 8) move_binaries(connection, version);
  execute(connection, kLast, version);
  for (const std::string_view table : {"winner", "missed", "claim"})
    if (version < 5) connection.execute(fmt::format(kRenameNumerics, table));
  check_schema(connection, path, Access::write);
}

void bring_up_to_date(Connection& connection, const std::filesystem::path& path) {
  const std::int64_t version = check_schema(connection, path, Access::write);
  if (version == kEmptyFile) create_schema(connection);
  if (version != kEmptyFile && version != kSchemaVersion) migrate(connection, path, version);
}

}  // namespace hone::cache
