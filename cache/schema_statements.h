// The statements that make the tables, indices and views of a cache file, for schema_objects(). A number at the end of
// a name is the last version that has the statement.
#pragma once

#include <string_view>

namespace hone::cache {

inline constexpr std::string_view kDevice = R"sql(CREATE TABLE device (
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

inline constexpr std::string_view kToolchain = R"sql(CREATE TABLE toolchain (
  id INTEGER PRIMARY KEY,
  compiler TEXT NOT NULL,
  family_digest TEXT NOT NULL,
  UNIQUE (family_digest, compiler)
) STRICT)sql";

inline constexpr std::string_view kBinary = R"sql(CREATE TABLE binary (
  digest TEXT NOT NULL PRIMARY KEY,
  format TEXT NOT NULL,
  architecture TEXT NOT NULL,
  code BLOB NOT NULL,
  entries TEXT NOT NULL DEFAULT '',
  bytes INTEGER NOT NULL DEFAULT 0
) STRICT)sql";

/// Without a reference to binary: a winner outlives its evicted code.
inline constexpr std::string_view kWinner = R"sql(CREATE TABLE winner (
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
  binary TEXT NOT NULL,
  policy TEXT NOT NULL,
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
  objective TEXT NOT NULL DEFAULT 'time',
  lender TEXT NOT NULL DEFAULT '',
  UNIQUE (device, toolchain, family, operation, dtype, numerics, launch_context, alignment,
          first0, last0, first1, last1, first2, last2, objective),
  CHECK (first0 <= last0 AND first1 <= last1 AND first2 <= last2)
) STRICT)sql";

inline constexpr std::string_view kWinnerBinary = "CREATE INDEX winner_binary ON winner (binary)";

inline constexpr std::string_view kTuning = R"sql(CREATE TABLE tuning (
  winner INTEGER PRIMARY KEY REFERENCES winner ON DELETE CASCADE,
  started_at INTEGER NOT NULL,
  compile_ms REAL NOT NULL,
  measure_ms REAL NOT NULL,
  budget_spent INTEGER NOT NULL CHECK (budget_spent IN (0, 1)),
  digest TEXT NOT NULL,
  power_limit_w REAL NOT NULL DEFAULT 0,
  trial_count INTEGER NOT NULL DEFAULT 0,
  trial_bytes INTEGER NOT NULL DEFAULT 0,
  trials BLOB NOT NULL DEFAULT x''
) STRICT)sql";

/// Up to version 7.
inline constexpr std::string_view kTrial7 = R"sql(CREATE TABLE trial (
  winner INTEGER NOT NULL REFERENCES tuning ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  policy TEXT NOT NULL,
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
  energy_uj REAL NOT NULL DEFAULT 0,
  energy_spread_uj REAL NOT NULL DEFAULT 0,
  sequence INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (winner, rank)
) STRICT, WITHOUT ROWID)sql";

inline constexpr std::string_view kUsage = R"sql(CREATE TABLE usage (
  winner INTEGER PRIMARY KEY REFERENCES winner ON DELETE CASCADE,
  used_at INTEGER NOT NULL,
  loads INTEGER NOT NULL
) STRICT)sql";

/// The columns of the key come first: integrity_check of SQLite 3.40 misreads other tables without row ids.
inline constexpr std::string_view kMissed = R"sql(CREATE TABLE missed (
  device INTEGER NOT NULL REFERENCES device ON DELETE CASCADE,
  toolchain INTEGER NOT NULL REFERENCES toolchain ON DELETE CASCADE,
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
  objective TEXT NOT NULL DEFAULT 'time',
  driver TEXT NOT NULL,
  reason TEXT NOT NULL,
  extent0 INTEGER NOT NULL,
  extent1 INTEGER NOT NULL,
  extent2 INTEGER NOT NULL,
  bytes_moved INTEGER NOT NULL,
  weight INTEGER NOT NULL,
  missed_at INTEGER NOT NULL,
  PRIMARY KEY (device, toolchain, family, operation, dtype, numerics, launch_context, alignment,
               first0, last0, first1, last1, first2, last2, objective),
  CHECK (first0 <= last0 AND first1 <= last1 AND first2 <= last2)
) STRICT, WITHOUT ROWID)sql";

inline constexpr std::string_view kClaim = R"sql(CREATE TABLE claim (
  device INTEGER NOT NULL REFERENCES device ON DELETE CASCADE,
  toolchain INTEGER NOT NULL REFERENCES toolchain ON DELETE CASCADE,
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
  objective TEXT NOT NULL DEFAULT 'time',
  owner TEXT NOT NULL,
  process TEXT NOT NULL,
  taken_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  PRIMARY KEY (device, toolchain, family, operation, dtype, numerics, launch_context, alignment,
               first0, last0, first1, last1, first2, last2, objective),
  CHECK (first0 <= last0 AND first1 <= last1 AND first2 <= last2)
) STRICT, WITHOUT ROWID)sql";

inline constexpr std::string_view kProperty = R"sql(CREATE TABLE property (
  name TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL,
  digest TEXT NOT NULL
) STRICT, WITHOUT ROWID)sql";

/// Machines share the row of a device, and the host has its part in what is measured.
inline constexpr std::string_view kLimits = R"sql(CREATE TABLE limits (
  device TEXT NOT NULL,
  machine TEXT NOT NULL,
  driver TEXT NOT NULL,
  enqueue_us REAL NOT NULL,
  stream_launch_us REAL NOT NULL,
  graph_launch_us REAL NOT NULL,
  read_gbps REAL NOT NULL,
  measured_at INTEGER NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (device, machine, driver)
) STRICT, WITHOUT ROWID)sql";

inline constexpr std::string_view kWinners1 = R"sql(CREATE VIEW winners AS
SELECT w.id, d.kind AS device_kind, d.name AS device, d.architecture, w.family, w.operation, w.dtype, w.numerics,
       w.launch_context, w.alignment, w.first0, w.last0, w.first1, w.last1, w.first2, w.last2,
       w.tuned, w.variant, w.max_blocks, w.block_threads, w.registers, w.static_smem_bytes, w.local_bytes,
       w.resident_blocks, 1.0 * w.resident_blocks * w.block_threads / d.max_threads_per_sm AS occupancy,
       w.extent0, w.extent1, w.extent2, w.bytes_moved, w.median_us, w.spread_us,
       w.bytes_moved / w.median_us / 1000.0 AS gbps, d.peak_bandwidth_gbps, t.compiler, w.driver, t.family_digest,
       w.binary AS binary_digest, w.created_at
FROM winner w JOIN device d ON d.id = w.device JOIN toolchain t ON t.id = w.toolchain)sql";

inline constexpr std::string_view kWinners2 = R"sql(CREATE VIEW winners AS
SELECT w.id, d.kind AS device_kind, d.name AS device, d.architecture, w.family, w.operation, w.dtype, w.numerics,
       w.launch_context, w.alignment, w.first0, w.last0, w.first1, w.last1, w.first2, w.last2,
       w.tuned, w.variant, w.max_blocks, w.block_threads, w.registers, w.static_smem_bytes, w.local_bytes,
       w.resident_blocks, 1.0 * w.resident_blocks * w.block_threads / d.max_threads_per_sm AS occupancy,
       w.extent0, w.extent1, w.extent2, w.bytes_moved, w.median_us, w.spread_us,
       w.bytes_moved / w.median_us / 1000.0 AS gbps, d.peak_bandwidth_gbps, t.compiler, w.driver, t.family_digest,
       w.binary AS binary_digest, w.created_at,
       (SELECT length(b.code) FROM binary b WHERE b.digest = w.binary) AS binary_bytes, u.used_at, u.loads,
       EXISTS (SELECT 1 FROM missed m
               WHERE m.device = w.device AND m.toolchain = w.toolchain AND m.family = w.family
                 AND m.operation = w.operation AND m.dtype = w.dtype AND m.numerics = w.numerics
                 AND m.launch_context = w.launch_context AND m.alignment = w.alignment
                 AND m.first0 = w.first0 AND m.last0 = w.last0 AND m.first1 = w.first1 AND m.last1 = w.last1
                 AND m.first2 = w.first2 AND m.last2 = w.last2 AND m.driver <> w.driver) AS stale
FROM winner w JOIN device d ON d.id = w.device JOIN toolchain t ON t.id = w.toolchain
     LEFT JOIN usage u ON u.winner = w.id)sql";

/// A time is that of extent0 … 2, so a class that does not hold them has none: its winner was measured elsewhere.
inline constexpr std::string_view kWinners = R"sql(CREATE VIEW winners AS
SELECT w.id, d.kind AS device_kind, d.name AS device, d.architecture, w.family, w.operation, w.dtype, w.numerics,
       w.launch_context, w.objective, w.alignment, w.first0, w.last0, w.first1, w.last1, w.first2, w.last2,
       CASE WHEN w.tuned THEN iif(w.has_extents, 'tuned', 'lent')
            ELSE iif(w.has_extents AND w.lender = '', 'heuristic', 'nearest') END AS how, nullif(w.lender, '') AS lender,
       w.tuned, w.policy, w.max_blocks, w.block_threads, nullif(w.registers, 0) AS registers,
       w.static_smem_bytes, w.local_bytes, w.resident_blocks,
       1.0 * w.resident_blocks * w.block_threads / d.max_threads_per_sm AS occupancy,
       w.extent0, w.extent1, w.extent2, iif(w.is_measured, w.bytes_moved, NULL) AS bytes_moved,
       iif(w.is_measured, w.median_us, NULL) AS median_us, iif(w.is_measured, w.spread_us, NULL) AS spread_us,
       iif(w.is_measured, w.bytes_moved / w.median_us / 1000.0, NULL) AS gbps,
       nullif(d.peak_bandwidth_gbps, 0) AS peak_bandwidth_gbps, t.compiler, w.driver, t.family_digest,
       w.binary AS binary_digest, w.created_at,
       (SELECT max(b.bytes, length(b.code)) FROM binary b WHERE b.digest = w.binary) AS binary_bytes,
       u.used_at, u.loads,
       EXISTS (SELECT 1 FROM missed m
               WHERE m.device = w.device AND m.toolchain = w.toolchain AND m.family = w.family
                 AND m.operation = w.operation AND m.dtype = w.dtype AND m.numerics = w.numerics
                 AND m.launch_context = w.launch_context AND m.alignment = w.alignment
                 AND m.first0 = w.first0 AND m.last0 = w.last0 AND m.first1 = w.first1 AND m.last1 = w.last1
                 AND m.first2 = w.first2 AND m.last2 = w.last2 AND m.objective = w.objective
                 AND m.driver <> w.driver) AS stale
FROM (SELECT *, tuned AND has_extents AS is_measured
      FROM (SELECT *, extent0 BETWEEN first0 AND last0 AND extent1 BETWEEN first1 AND last1
                      AND extent2 BETWEEN first2 AND last2 AS has_extents
            FROM winner)) w
     JOIN device d ON d.id = w.device JOIN toolchain t ON t.id = w.toolchain LEFT JOIN usage u ON u.winner = w.id)sql";

/// Up to version 7.
inline constexpr std::string_view kTrials7 = R"sql(CREATE VIEW trials AS
SELECT r.winner AS winner_id, r.rank, d.name AS device, w.family, w.operation, w.dtype, w.extent0, w.extent1,
       w.extent2, r.verdict, r.reason, r.is_default, r.policy, r.max_blocks, r.block_threads, r.registers,
       r.static_smem_bytes, r.local_bytes, r.resident_blocks, r.bytes_in_flight_per_sm, r.predicted_us, r.median_us,
       r.spread_us, r.samples, r.sequence, w.objective, r.energy_uj, r.energy_spread_uj,
       w.bytes_moved / r.median_us / 1000.0 AS gbps, u.started_at
FROM trial r JOIN tuning u ON u.winner = r.winner JOIN winner w ON w.id = r.winner
     JOIN device d ON d.id = w.device)sql";

/// The sqlite3 shell has sqlar_uncompress(), which is zlib's uncompress(); others may define it.
inline constexpr std::string_view kTrials = R"sql(CREATE VIEW trials AS
SELECT t.winner AS winner_id, r.key + 1 AS rank, d.name AS device, w.family, w.operation, w.dtype, w.extent0,
       w.extent1, w.extent2, json_extract(r.value, '$[14]') AS verdict, json_extract(r.value, '$[15]') AS reason,
       json_extract(r.value, '$[13]') AS is_default, json_extract(r.value, '$[0]') AS policy,
       json_extract(r.value, '$[1]') AS max_blocks, json_extract(r.value, '$[2]') AS block_threads,
       json_extract(r.value, '$[3]') AS registers, json_extract(r.value, '$[4]') AS static_smem_bytes,
       json_extract(r.value, '$[5]') AS local_bytes, json_extract(r.value, '$[7]') AS resident_blocks,
       json_extract(r.value, '$[8]') AS bytes_in_flight_per_sm, json_extract(r.value, '$[9]') AS predicted_us,
       json_extract(r.value, '$[10]') AS median_us, json_extract(r.value, '$[11]') AS spread_us,
       json_extract(r.value, '$[12]') AS samples, json_extract(r.value, '$[16]') AS energy_uj,
       json_extract(r.value, '$[17]') AS energy_spread_uj, json_extract(r.value, '$[18]') AS sequence, w.objective,
       w.bytes_moved / json_extract(r.value, '$[10]') / 1000.0 AS gbps, t.started_at
FROM tuning t JOIN winner w ON w.id = t.winner JOIN device d ON d.id = w.device
     JOIN json_each(CAST(sqlar_uncompress(t.trials, t.trial_bytes) AS TEXT)) r)sql";

inline constexpr std::string_view kBinaries = R"sql(CREATE VIEW binaries AS
SELECT b.digest, b.format, b.architecture, max(b.bytes, length(b.code)) AS bytes,
       length(b.code) AS stored_bytes,
       (SELECT count(*) FROM winner w WHERE w.binary = b.digest) AS winners
FROM binary b)sql";

inline constexpr std::string_view kMisses = R"sql(CREATE VIEW misses AS
SELECT d.kind AS device_kind, d.name AS device, d.architecture, m.family, m.operation, m.dtype, m.numerics,
       m.launch_context, m.objective, m.alignment, m.first0, m.last0, m.first1, m.last1, m.first2, m.last2,
       m.driver, m.reason, m.extent0, m.extent1, m.extent2, m.bytes_moved, m.weight, m.missed_at, t.compiler,
       t.family_digest
FROM missed m JOIN device d ON d.id = m.device JOIN toolchain t ON t.id = m.toolchain)sql";

inline constexpr std::string_view kClaims = R"sql(CREATE VIEW claims AS
SELECT d.kind AS device_kind, d.name AS device, d.architecture, c.family, c.operation, c.dtype, c.numerics,
       c.launch_context, c.objective, c.alignment, c.first0, c.last0, c.first1, c.last1, c.first2, c.last2,
       c.owner, c.process, c.taken_at_ms, c.expires_at_ms
FROM claim c JOIN device d ON d.id = c.device)sql";

}  // namespace hone::cache
