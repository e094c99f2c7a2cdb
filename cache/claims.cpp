#include "cache/claims.h"

#include <optional>
#include <random>

#include "cache/process.h"
#include "cache/row_sql.h"
#include "cache/rows.h"

namespace hone::cache {
namespace {

using std::chrono::milliseconds;

/// How far the clocks of two machines that share a file may be apart.
constexpr milliseconds kClockSkew = std::chrono::minutes(1);

/// Wall-clock time, which processes of several machines share. It may jump; then a class is tuned twice, or waited for
/// as long as kLongestLease at most.
milliseconds now() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
}

struct ClaimRow {
  std::string owner;
  std::string process;
  std::int64_t taken_at_ms = 0;
  std::int64_t expires_at_ms = 0;
};

bool is_alive(const ClaimRow& row) {
  const std::int64_t time = now().count();
  const bool is_plausible = row.taken_at_ms <= time + kClockSkew.count() &&
                            row.expires_at_ms <= time + kLongestLease.count();
  return is_plausible && time < row.expires_at_ms && !has_ended(row.process);
}

/// Where the full key is that of a claim, by the columns of device and toolchain.
std::string key_condition(const Connection& connection) {
  Names names;
  append_names<ProblemRecord>(names, connection.schema_version());
  return fmt::format(
      "device = ? AND toolchain = (SELECT id FROM toolchain WHERE compiler = ? AND family_digest = ?) AND {} = ?",
      fmt::join(names, " = ? AND "));
}

void bind_key(Connection& connection, Statement& statement, const KeyRecord& key) {
  const std::optional<DeviceRow> device = find_shared_device(connection, key.device);
  statement.bind(device ? device->id : std::int64_t{0});  // 0: no row has that
  each_key_field(key.toolchain, Binder{statement});
  each_field(key.problem, Binder{statement});
}

std::optional<ClaimRow> read_claim(Connection& connection, const KeyRecord& key) {
  Statement statement = connection.prepare(
      "SELECT owner, process, taken_at_ms, expires_at_ms FROM claim WHERE " + key_condition(connection));
  bind_key(connection, statement, key);
  if (!statement.step()) return std::nullopt;
  ClaimRow row;
  statement.read(row.owner);
  statement.read(row.process);
  statement.read(row.taken_at_ms);
  statement.read(row.expires_at_ms);
  return row;
}

}  // namespace

bool take_claim(Connection& connection, const KeyRecord& key, const std::string& owner, milliseconds lease) {
  const std::optional<ClaimRow> row = read_claim(connection, key);
  if (row && is_alive(*row)) return false;
  Names names{"device", "toolchain", "owner", "process", "taken_at_ms", "expires_at_ms"};
  append_names<ProblemRecord>(names);
  Statement statement = connection.prepare("REPLACE" + insert_sql("claim", names).substr(std::string("INSERT").size()));
  const std::string process = this_process();
  const milliseconds time = now();
  statement.bind(share_device(connection, key.device).id).bind(put_toolchain(connection, key.toolchain));
  statement.bind(owner).bind(process).bind(time.count()).bind((time + std::min(lease, kLongestLease)).count());
  each_field(key.problem, Binder{statement});
  statement.run();
  return true;
}

bool renew_claim(Connection& connection, const KeyRecord& key, const std::string& owner, milliseconds lease) {
  const std::optional<ClaimRow> row = read_claim(connection, key);
  if (!row || row->owner != owner) return false;
  Statement statement = connection.prepare("UPDATE claim SET expires_at_ms = ? WHERE " + key_condition(connection));
  statement.bind((now() + std::min(lease, kLongestLease)).count());
  bind_key(connection, statement, key);
  statement.run();
  return true;
}

void release_claim(Connection& connection, const KeyRecord& key, const std::string& owner) {
  Statement statement = connection.prepare("DELETE FROM claim WHERE owner = ? AND " + key_condition(connection));
  statement.bind(owner);
  bind_key(connection, statement, key);
  statement.run();
}

bool is_claimed(Connection& connection, const KeyRecord& key) {
  const std::optional<ClaimRow> row = read_claim(connection, key);
  return row && is_alive(*row);
}

std::string new_owner() {
  std::random_device random;
  std::string name;
  for (int word = 0; word < 4; ++word) name += fmt::format("{:08x}", random());
  return name;
}

}  // namespace hone::cache
