#include "cache/notes.h"

#include "cache/row_sql.h"
#include "cache/rows.h"

namespace hone::cache {
namespace {

void write_miss(Connection& connection, const MissRecord& miss, std::int64_t time) {
  Names names{"device", "toolchain"};
  append_names<ProblemRecord>(names);
  const Names key = names;
  for (const char* name : {"driver", "reason", "extent0", "extent1", "extent2", "bytes_moved", "missed_at", "weight"})
    names.push_back(name);
  Statement statement = connection.prepare(
      fmt::format("{} ON CONFLICT ({}) DO UPDATE SET driver = excluded.driver, reason = excluded.reason,"
                  " extent0 = excluded.extent0, extent1 = excluded.extent1, extent2 = excluded.extent2,"
                  " bytes_moved = excluded.bytes_moved, missed_at = excluded.missed_at, weight = weight + 1",
                  insert_sql("missed", names), fmt::join(key, ", ")));
  statement.bind(share_device(connection, miss.key.device).id).bind(put_toolchain(connection, miss.key.toolchain));
  each_field(miss.key.problem, Binder{statement});
  statement.bind(miss.key.toolchain.driver).bind(miss.reason);
  for (const std::int64_t extent : miss.extents) statement.bind(extent);
  statement.bind(miss.bytes_moved).bind(time).bind(1).run();
}

/// Removes the classes that lie within that of `key`; `condition` may ask for `bound` besides.
void remove_within(Connection& connection, std::string_view table, const KeyRecord& key, std::int64_t device,
                   std::int64_t toolchain, std::string_view condition = "", const std::string* bound = nullptr) {
  Statement statement = connection.prepare(fmt::format(
      "DELETE FROM {} WHERE device = ? AND toolchain = ? AND family = ? AND operation = ? AND dtype = ?"
      " AND numerics = ? AND launch_context = ? AND alignment = ?"
      " AND first0 >= ? AND last0 <= ? AND first1 >= ? AND last1 <= ? AND first2 >= ? AND last2 <= ?"
      " AND objective = ?{}",
      table, condition));
  statement.bind(device).bind(toolchain);
  each_field(key.problem, Binder{statement});
  if (bound != nullptr) statement.bind(*bound);
  statement.run();
}

}  // namespace

void write_notes(Connection& connection, const Notes& notes, std::int64_t seconds_since_1970) {
  for (const MissRecord& miss : notes.misses) write_miss(connection, miss, seconds_since_1970);
  for (const auto& [winner, loads] : notes.loads) {
    // The winner may have been replaced meanwhile.
    Statement statement = connection.prepare(
        "INSERT INTO usage (winner, used_at, loads) SELECT id, ?2, ?3 FROM winner WHERE id = ?1"
        " ON CONFLICT (winner) DO UPDATE SET used_at = excluded.used_at, loads = loads + excluded.loads");
    statement.bind(winner).bind(seconds_since_1970).bind(loads).run();
  }
}

std::vector<StoredMiss> read_misses(Connection& connection) {
  Names device, toolchain, problem;
  append_names<DeviceRecord>(device);
  const ToolchainRecord names;
  each_key_field(names, [&](std::string_view name, const auto&) { toolchain.push_back(name); });
  append_names<ProblemRecord>(problem, connection.schema_version());
  Statement statement = connection.prepare(
      fmt::format("SELECT d.{}, t.{}, {},"
                  " m.driver, m.reason, m.extent0, m.extent1, m.extent2, m.bytes_moved, m.weight, m.missed_at"
                  " FROM missed m JOIN device d ON d.id = m.device JOIN toolchain t ON t.id = m.toolchain"
                  " ORDER BY m.weight DESC, m.bytes_moved DESC, m.missed_at DESC",
                  fmt::join(device, ", d."), fmt::join(toolchain, ", t."), fmt::join(problem, ", ")));
  std::vector<StoredMiss> misses;
  while (statement.step()) {
    StoredMiss& stored = misses.emplace_back();
    each_field(stored.miss.key.device, Reader{statement});
    each_key_field(stored.miss.key.toolchain, Reader{statement});
    each_field(stored.miss.key.problem, Reader{statement});
    statement.read(stored.miss.key.toolchain.driver);
    statement.read(stored.miss.reason);
    for (std::int64_t& extent : stored.miss.extents) statement.read(extent);
    statement.read(stored.miss.bytes_moved);
    statement.read(stored.weight);
    statement.read(stored.missed_at);
  }
  return misses;
}

void end_claims(Connection& connection, const KeyRecord& key, std::int64_t device, std::int64_t toolchain) {
  remove_within(connection, "claim", key, device, toolchain);
}

void end_misses(Connection& connection, const KeyRecord& key, std::int64_t device, std::int64_t toolchain) {
  remove_within(connection, "missed", key, device, toolchain,
                fmt::format(" AND (reason = '{}' OR driver = ?)", kUntuned), &key.toolchain.driver);
}

}  // namespace hone::cache
