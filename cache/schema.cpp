#include "cache/schema.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string>

#include "cache/errors.h"

namespace hone::cache {
namespace {

constexpr std::string_view kDevice = R"sql(CREATE TABLE device (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  architecture TEXT NOT NULL,
  identity TEXT NOT NULL,
  name TEXT NOT NULL,
  sm_count INTEGER NOT NULL,
  max_threads_per_sm INTEGER NOT NULL,
  peak_bandwidth_gbps REAL NOT NULL,
  digest TEXT NOT NULL,
  UNIQUE (kind, architecture, identity)
) STRICT)sql";

constexpr std::string_view kToolchain = R"sql(CREATE TABLE toolchain (
  id INTEGER PRIMARY KEY,
  compiler TEXT NOT NULL,
  family_digest TEXT NOT NULL,
  UNIQUE (family_digest, compiler)
) STRICT)sql";

constexpr std::string_view kBinary = R"sql(CREATE TABLE binary (
  digest TEXT NOT NULL PRIMARY KEY,
  format TEXT NOT NULL,
  architecture TEXT NOT NULL,
  code BLOB NOT NULL
) STRICT)sql";

constexpr std::string_view kWinner = R"sql(CREATE TABLE winner (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  device INTEGER NOT NULL REFERENCES device,
  toolchain INTEGER NOT NULL REFERENCES toolchain,
  family TEXT NOT NULL,
  operation TEXT NOT NULL,
  dtype TEXT NOT NULL,
  numerics TEXT NOT NULL,
  launch_context TEXT NOT NULL,
  alignment INTEGER NOT NULL,
  first0 INTEGER NOT NULL,
  last0 INTEGER NOT NULL,
  first1 INTEGER NOT NULL,
  last1 INTEGER NOT NULL,
  first2 INTEGER NOT NULL,
  last2 INTEGER NOT NULL,
  driver TEXT NOT NULL,
  binary TEXT NOT NULL REFERENCES binary,
  variant TEXT NOT NULL,
  max_blocks INTEGER NOT NULL,
  block_threads INTEGER NOT NULL,
  registers INTEGER NOT NULL,
  static_smem_bytes INTEGER NOT NULL,
  local_bytes INTEGER NOT NULL,
  max_threads_per_block INTEGER NOT NULL,
  resident_blocks INTEGER NOT NULL,
  tuned INTEGER NOT NULL CHECK (tuned IN (0, 1)),
  extent0 INTEGER NOT NULL,
  extent1 INTEGER NOT NULL,
  extent2 INTEGER NOT NULL,
  bytes_moved INTEGER NOT NULL,
  median_us REAL NOT NULL,
  spread_us REAL NOT NULL,
  created_at INTEGER NOT NULL,
  digest TEXT NOT NULL,
  UNIQUE (device, toolchain, family, operation, dtype, numerics, launch_context, alignment,
          first0, last0, first1, last1, first2, last2),
  CHECK (first0 <= last0 AND first1 <= last1 AND first2 <= last2)
) STRICT)sql";

constexpr std::string_view kWinnerBinary = "CREATE INDEX winner_binary ON winner (binary)";

constexpr std::string_view kTuning = R"sql(CREATE TABLE tuning (
  winner INTEGER PRIMARY KEY REFERENCES winner ON DELETE CASCADE,
  started_at INTEGER NOT NULL,
  compile_ms REAL NOT NULL,
  measure_ms REAL NOT NULL,
  budget_spent INTEGER NOT NULL CHECK (budget_spent IN (0, 1)),
  digest TEXT NOT NULL
) STRICT)sql";

constexpr std::string_view kTrial = R"sql(CREATE TABLE trial (
  winner INTEGER NOT NULL REFERENCES tuning ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  variant TEXT NOT NULL,
  max_blocks INTEGER NOT NULL,
  block_threads INTEGER NOT NULL,
  registers INTEGER NOT NULL,
  static_smem_bytes INTEGER NOT NULL,
  local_bytes INTEGER NOT NULL,
  max_threads_per_block INTEGER NOT NULL,
  resident_blocks INTEGER NOT NULL,
  bytes_in_flight_per_sm INTEGER NOT NULL,
  predicted_us REAL,
  median_us REAL,
  spread_us REAL,
  samples INTEGER NOT NULL,
  is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  verdict TEXT NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (winner, rank)
) STRICT, WITHOUT ROWID)sql";

constexpr std::string_view kWinners = R"sql(CREATE VIEW winners AS
SELECT w.id, d.kind AS device_kind, d.name AS device, d.architecture, w.family, w.operation, w.dtype, w.numerics,
       w.launch_context, w.alignment, w.first0, w.last0, w.first1, w.last1, w.first2, w.last2,
       w.tuned, w.variant, w.max_blocks, w.block_threads, w.registers, w.static_smem_bytes, w.local_bytes,
       w.resident_blocks, 1.0 * w.resident_blocks * w.block_threads / d.max_threads_per_sm AS occupancy,
       w.extent0, w.extent1, w.extent2, w.bytes_moved, w.median_us, w.spread_us,
       w.bytes_moved / w.median_us / 1000.0 AS gbps, d.peak_bandwidth_gbps, t.compiler, w.driver, t.family_digest,
       w.binary AS binary_digest, w.created_at
FROM winner w JOIN device d ON d.id = w.device JOIN toolchain t ON t.id = w.toolchain)sql";

constexpr std::string_view kTrials = R"sql(CREATE VIEW trials AS
SELECT r.winner AS winner_id, r.rank, d.name AS device, w.family, w.operation, w.dtype, w.extent0, w.extent1,
       w.extent2, r.verdict, r.reason, r.is_default, r.variant, r.max_blocks, r.block_threads, r.registers,
       r.static_smem_bytes, r.local_bytes, r.resident_blocks, r.bytes_in_flight_per_sm, r.predicted_us, r.median_us,
       r.spread_us, r.samples, w.bytes_moved / r.median_us / 1000.0 AS gbps, u.started_at
FROM trial r JOIN tuning u ON u.winner = r.winner JOIN winner w ON w.id = r.winner
     JOIN device d ON d.id = w.device)sql";

constexpr std::array<SchemaObject, 9> kObjects{{
    {"table", "device", kDevice},
    {"table", "toolchain", kToolchain},
    {"table", "binary", kBinary},
    {"table", "winner", kWinner},
    {"index", "winner_binary", kWinnerBinary},
    {"table", "tuning", kTuning},
    {"table", "trial", kTrial},
    {"view", "winners", kWinners},
    {"view", "trials", kTrials},
}};

std::int64_t read_number(Connection& connection, std::string_view sql) {
  Statement statement = connection.prepare(sql);
  std::int64_t number = 0;
  if (statement.step()) statement.read(number);
  return number;
}

/// "<type> <name>" → statement, without what SQLite adds by itself: indexes behind UNIQUE and PRIMARY KEY, which have
/// no statement, and the counter behind AUTOINCREMENT.
std::map<std::string, std::string> read_objects(Connection& connection) {
  Statement statement =
      connection.prepare("SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name");
  std::map<std::string, std::string> objects;
  while (statement.step()) {
    std::string type, name, sql;
    statement.read(type);
    statement.read(name);
    statement.read(sql);
    const bool automatic = name.starts_with("sqlite_autoindex_") && type == "index" && sql.empty();
    const bool counter = name == "sqlite_sequence" && sql == "CREATE TABLE sqlite_sequence(name,seq)";
    if (!automatic && !counter) objects.emplace(type + " " + name, sql);
  }
  return objects;
}

/// The first difference from schema_objects(); "" if there is none.
std::string difference(std::map<std::string, std::string> found) {
  for (const SchemaObject& object : kObjects) {
    const auto position = found.find(fmt::format("{} {}", object.type, object.name));
    if (position == found.end()) return fmt::format("there is no {} {}", object.type, object.name);
    if (position->second != object.sql) return fmt::format("the {} {} was changed", object.type, object.name);
    found.erase(position);
  }
  return found.empty() ? "" : "it has another " + found.begin()->first;
}

}  // namespace

std::span<const SchemaObject> schema_objects() { return kObjects; }

SchemaState check_schema(Connection& connection, const std::filesystem::path& path) {
  // These two stand in the header of the file: reading them parses no schema yet.
  const std::int64_t application_id = read_number(connection, "PRAGMA application_id");
  const std::int64_t version = read_number(connection, "PRAGMA user_version");
  const bool unmarked = application_id == 0 && version == 0;
  if (!unmarked && application_id != kApplicationId) {
    throw store_error(path, StoreFault::foreign, fmt::format("its application_id is {}", application_id));
  }
  if (version > kSchemaVersion) {
    throw store_error(path, StoreFault::newer,
                      fmt::format("its schema has version {}, this Hone knows {}", version, kSchemaVersion));
  }
  if (!unmarked && version != kSchemaVersion) {
    throw store_error(path, StoreFault::foreign, fmt::format("no Hone has a schema version {}", version));
  }
  std::map<std::string, std::string> objects = read_objects(connection);
  if (unmarked && objects.empty()) return SchemaState::empty;
  if (unmarked) throw store_error(path, StoreFault::foreign, "it holds a " + objects.begin()->first);
  const std::string found = difference(std::move(objects));
  if (!found.empty()) throw store_error(path, StoreFault::foreign, found);
  return SchemaState::current;
}

void create_schema(Connection& connection) {
  for (const SchemaObject& object : kObjects) connection.execute(object.sql);
  connection.execute(fmt::format("PRAGMA application_id = {}", kApplicationId));
  connection.execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
}

}  // namespace hone::cache
