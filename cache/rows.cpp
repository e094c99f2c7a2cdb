#include "cache/rows.h"

#include <vector>

#include "cache/identity.h"
#include "cache/packed.h"
#include "cache/packed_trials.h"
#include "cache/row_sql.h"

namespace hone::cache {
namespace {

std::string device_digest(const DeviceRecord& device) {
  Digest digest;
  each_field(device, FieldDigester{digest});
  return digest.hex();
}

/// Covers every column of the row, and the rows that it refers to by what they say rather than by their id.
std::string winner_digest(const WinnerRow& winner) {
  Digest digest;
  const KeyRecord& key = winner.stored.key;
  each_key_field(key.device, FieldDigester{digest});
  each_field(key.toolchain, FieldDigester{digest});
  each_field(key.problem, FieldDigester{digest});
  each_field(winner.stored.winner, FieldDigester{digest});
  digest.add("binary", std::string_view(winner.stored.binary_digest)).add("created_at", winner.stored.created_at);
  return digest.hex();
}

/// Covers the trials too, and which winner they explain.
std::string tuning_digest(std::int64_t winner_id, const TuningRecord& tuning) {
  Digest digest;
  digest.add("winner", winner_id);
  each_field(tuning, FieldDigester{digest});
  for (const TrialRecord& trial : tuning.trials) each_field(trial, FieldDigester{digest});
  return digest.hex();
}

std::int64_t returned_id(Statement statement) {
  std::int64_t id = 0;
  statement.step();
  statement.read(id);
  statement.step();  // an INSERT is only done when it says so
  return id;
}

/// read_winner() reads these columns.
std::string winner_columns(std::int64_t schema_version) {
  Names device, rest;
  append_names<DeviceRecord>(device);
  append_names<ToolchainRecord>(rest);
  append_names<ProblemRecord>(rest, schema_version);
  append_names<WinnerRecord>(rest, schema_version);
  return fmt::format(
      "w.id, d.{}, d.digest, {}, w.binary, w.created_at, w.digest, "
      "(SELECT {} FROM binary WHERE binary.digest = w.binary)",
      fmt::join(device, ", d."), fmt::join(rest, ", "),
      schema_version < 8 ? "length(code)" : "max(bytes, length(code))");
}

Statement select_devices(Connection& connection, std::string_view condition) {
  Names names;
  append_names<DeviceRecord>(names);
  return connection.prepare(
      fmt::format("SELECT id, {}, digest FROM device WHERE {}", fmt::join(names, ", "), condition));
}

std::optional<DeviceRow> read_device(Statement& statement) {
  if (!statement.step()) return std::nullopt;
  DeviceRow row;
  std::string digest;
  statement.read(row.id);
  each_field(row.device, Reader{statement});
  statement.read(digest);
  row.intact = digest == device_digest(row.device);
  return row;
}

}  // namespace

Statement select_winners(Connection& connection, std::string_view tail) {
  // CROSS JOIN keeps SQLite to this order, in which every step is a look into an index.
  return connection.prepare(fmt::format(
      "SELECT {} FROM device d CROSS JOIN toolchain t CROSS JOIN winner w ON w.device = d.id AND w.toolchain = t.id {}",
      winner_columns(connection.schema_version()), tail));
}

std::optional<WinnerRow> find_winner(Connection& connection, std::int64_t id) {
  const auto query = [](std::int64_t schema_version) {
    return fmt::format(
        "SELECT {} FROM winner w CROSS JOIN device d ON d.id = w.device CROSS JOIN toolchain t ON t.id = w.toolchain"
        " WHERE w.id = ?",
        winner_columns(schema_version));
  };
  static const std::string& current = *new std::string(query(kSchemaVersion));  // never destroyed, as schema_objects()
  const std::int64_t version = connection.schema_version();
  Statement statement = connection.prepare(version >= kSchemaVersion ? current : query(version));
  statement.bind(id);
  std::optional<WinnerRow> row;
  while ((!row || !row->intact) && statement.step()) row = read_winner(statement);
  return row;
}

std::optional<DeviceRow> find_device(Connection& connection, const DeviceRecord& device) {
  Statement statement = select_devices(connection, "kind = ? AND architecture = ? AND identity = ?");
  each_key_field(device, Binder{statement});
  return read_device(statement);
}

std::optional<DeviceRow> find_device(Connection& connection, std::int64_t id) {
  Statement statement = select_devices(connection, "id = ?");
  statement.bind(id);
  return read_device(statement);
}

std::optional<DeviceRow> find_shared_device(Connection& connection, const DeviceRecord& device) {
  if (std::optional<DeviceRow> own = find_device(connection, device)) return own;
  Statement statement = select_devices(connection, "kind = ? AND architecture = ? ORDER BY id");
  statement.bind(device.kind).bind(device.architecture);
  while (std::optional<DeviceRow> row = read_device(statement))
    if (row->intact && same_device(row->device, device)) return row;
  return std::nullopt;
}

DeviceRow share_device(Connection& connection, const DeviceRecord& device) {
  std::optional<DeviceRow> row = find_shared_device(connection, device);
  if (row && row->device.identity != device.identity) return *std::move(row);
  return {.id = put_device(connection, device), .device = device, .intact = true};
}

WinnerRow read_winner(Statement& statement) {
  WinnerRow row;
  std::string digest, digest_of_device;
  statement.read(row.stored.id);
  each_field(row.stored.key.device, Reader{statement});
  statement.read(digest_of_device);
  each_field(row.stored.key.toolchain, Reader{statement});
  each_field(row.stored.key.problem, Reader{statement});
  each_field(row.stored.winner, Reader{statement});
  statement.read(row.stored.binary_digest);
  statement.read(row.stored.created_at);
  statement.read(digest);
  statement.read(row.stored.binary_bytes);
  const auto holds = [&] { return digest == winner_digest(row); };
  row.intact = holds();
  if (!row.intact) {  // its digest may say that it was saved from a damaged file of an earlier version
    std::string& numerics = row.stored.key.problem.numerics;
    numerics = renamed_numerics(numerics);
    row.intact = holds();
  }
  row.intact = row.intact && digest_of_device == device_digest(row.stored.key.device);
  return row;
}

std::string binary_digest(const BinaryRecord& binary) {
  Digest digest;
  each_field(binary, [&](std::string_view name, const auto& value) {
    // Winners refer to a binary without entries by the digest that it had before there were any.
    if (name != "entries" || !binary.entries.empty()) FieldDigester{digest}(name, value);
  });
  return digest.hex();
}

std::optional<BinaryRecord> read_binary(Connection& connection, std::string_view digest) {
  Names names;
  append_names<BinaryRecord>(names, connection.schema_version());
  names.push_back(stored_name("bytes", connection.schema_version()));
  Statement statement =
      connection.prepare(fmt::format("SELECT {} FROM binary WHERE digest = ?", fmt::join(names, ", ")));
  statement.bind(digest);
  if (!statement.step()) return std::nullopt;
  BinaryRecord binary;
  each_field(binary, Reader{statement});
  Packed packed{.data = std::move(binary.code), .bytes = 0};
  statement.read(packed.bytes);
  std::optional<std::vector<std::byte>> code = unpack(std::move(packed));
  if (!code) return std::nullopt;
  binary.code = *std::move(code);
  if (binary_digest(binary) != digest) return std::nullopt;
  return binary;
}

std::optional<TuningRow> read_tuning(Connection& connection, std::int64_t winner_id) {
  Names names;
  append_names<TuningRecord>(names, connection.schema_version());
  const std::int64_t version = connection.schema_version();
  Statement statement = connection.prepare(fmt::format("SELECT {}, digest, {}, {} FROM tuning WHERE winner = ?",
                                                       fmt::join(names, ", "), stored_name("trial_bytes", version),
                                                       stored_name("trials", version)));
  statement.bind(winner_id);
  if (!statement.step()) return std::nullopt;
  TuningRow row;
  std::string digest;
  each_field(row.tuning, Reader{statement});
  statement.read(digest);

  if (version < 8) {
    row.tuning.trials = read_trial_rows(connection, "trial", winner_id, version);
  } else {
    Packed packed;
    statement.read(packed.bytes);
    statement.read(packed.data);
    std::optional<std::vector<TrialRecord>> trials = unpack_trials(std::move(packed));
    if (!trials) return row;
    row.tuning.trials = *std::move(trials);
  }
  row.intact = digest == tuning_digest(winner_id, row.tuning);
  return row;
}

std::int64_t put_device(Connection& connection, const DeviceRecord& device) {
  Names names;
  append_names<DeviceRecord>(names);
  names.push_back("digest");
  Statement statement = connection.prepare(
      insert_sql("device", names) +
      " ON CONFLICT (kind, architecture, identity) DO UPDATE SET name = excluded.name, sm_count = excluded.sm_count,"
      " max_threads_per_sm = excluded.max_threads_per_sm, peak_bandwidth_gbps = excluded.peak_bandwidth_gbps,"
      " digest = excluded.digest RETURNING id");
  const std::string digest = device_digest(device);
  each_field(device, Binder{statement});
  statement.bind(digest);
  return returned_id(std::move(statement));
}

std::int64_t put_toolchain(Connection& connection, const ToolchainRecord& toolchain) {
  Statement statement = connection.prepare(
      "INSERT INTO toolchain (compiler, family_digest) VALUES (?, ?)"
      " ON CONFLICT (family_digest, compiler) DO UPDATE SET compiler = excluded.compiler RETURNING id");
  each_key_field(toolchain, Binder{statement});
  return returned_id(std::move(statement));
}

std::string put_binary(Connection& connection, const BinaryRecord& binary) {
  std::string digest = binary_digest(binary);
  // The comparison keeps a binary that winners share from being written again; a damaged one is.
  BinaryRecord stored = binary;
  Packed packed = pack(std::move(stored.code));
  stored.code = std::move(packed.data);
  Statement statement = connection.prepare(
      "INSERT INTO binary (format, architecture, code, entries, digest, bytes) VALUES (?, ?, ?, ?, ?, ?)"
      " ON CONFLICT (digest) DO UPDATE SET format = excluded.format, architecture = excluded.architecture,"
      " code = excluded.code, entries = excluded.entries, bytes = excluded.bytes"
      " WHERE code <> excluded.code OR format <> excluded.format OR architecture <> excluded.architecture"
      " OR entries <> excluded.entries OR bytes <> excluded.bytes");
  each_field(stored, Binder{statement});
  statement.bind(digest).bind(packed.bytes).run();
  return digest;
}

std::optional<WinnerRow> find_same_key(Connection& connection, std::int64_t device, std::int64_t toolchain,
                                       const ProblemRecord& problem) {
  Names names;
  append_names<ProblemRecord>(names);
  Statement statement = select_winners(
      connection, fmt::format("WHERE d.id = ? AND t.id = ? AND w.{} = ?", fmt::join(names, " = ? AND w.")));
  statement.bind(device).bind(toolchain);
  each_field(problem, Binder{statement});
  if (!statement.step()) return std::nullopt;
  return read_winner(statement);
}

std::int64_t insert_winner(Connection& connection, std::int64_t device, std::int64_t toolchain,
                           const WinnerRow& winner) {
  Names names{"device", "toolchain", "driver", "binary", "created_at", "digest"};
  append_names<ProblemRecord>(names);
  append_names<WinnerRecord>(names);
  Statement statement = connection.prepare(insert_sql("winner", names) + " RETURNING id");
  const StoredWinner& stored = winner.stored;
  const std::string digest = winner_digest(winner);
  statement.bind(device).bind(toolchain).bind(stored.key.toolchain.driver).bind(stored.binary_digest);
  statement.bind(stored.created_at).bind(digest);
  each_field(stored.key.problem, Binder{statement});
  each_field(stored.winner, Binder{statement});
  return returned_id(std::move(statement));
}

void insert_tuning(Connection& connection, std::int64_t winner_id, const TuningRecord& tuning) {
  Names names{"winner", "digest", "trial_count", "trial_bytes", "trials"};
  append_names<TuningRecord>(names);
  Statement statement = connection.prepare(insert_sql("tuning", names));
  const Packed packed = pack_trials(tuning.trials);
  const std::string digest = tuning_digest(winner_id, tuning);
  statement.bind(winner_id).bind(digest).bind(static_cast<std::int64_t>(tuning.trials.size()));
  statement.bind(packed.bytes).bind(std::span(packed.data));
  each_field(tuning, Binder{statement});
  statement.run();
}

void remove_winner(Connection& connection, const WinnerRow& winner) {
  connection.prepare("DELETE FROM winner WHERE id = ?").bind(winner.stored.id).run();
  connection.prepare("DELETE FROM binary WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM winner WHERE binary = ?1)")
      .bind(winner.stored.binary_digest)
      .run();
}

}  // namespace hone::cache
