#include "cache/maintenance/entry_rows.h"

#include <fmt/format.h>

#include <tuple>
#include <utility>

#include "cache/rows.h"

namespace hone::cache {
namespace {

/// The tuning of a winner; none where its digest does not hold, which is counted.
std::optional<TuningRecord> intact_tuning(Connection& connection, std::int64_t winner_id, std::int64_t& damaged) {
  std::optional<TuningRow> row = read_tuning(connection, winner_id);
  if (!row) return std::nullopt;
  if (row->intact) return std::move(row->tuning);
  ++damaged;
  return std::nullopt;
}

Entry to_entry(WinnerRow&& row, std::optional<TuningRecord>&& tuning) {
  return {.key = std::move(row.stored.key),
          .winner = std::move(row.stored.winner),
          .created_at = row.stored.created_at,
          .binary = std::move(row.stored.binary_digest),
          .tuning = std::move(tuning)};
}

auto for_people(const DeviceRecord& device) {
  return std::tie(device.name, device.sm_count, device.max_threads_per_sm, device.peak_bandwidth_gbps);
}

/// The larger of two descriptions of one device stays, so that the order of merging does not matter.
std::int64_t put_larger_device(Connection& connection, const DeviceRecord& device) {
  const std::optional<DeviceRow> old = find_device(connection, device);
  if (old && old->intact && for_people(old->device) >= for_people(device)) return old->id;
  return put_device(connection, device);
}

}  // namespace

PassCounts each_entry(Connection& connection, const std::function<void(Entry&&)>& visit) {
  PassCounts counts;
  // Ids first: sorting whole rows would take as much memory again as the file has.
  Statement order = connection.prepare("SELECT id FROM winner ORDER BY created_at, digest");
  while (order.step()) {
    std::int64_t id = 0;
    order.read(id);
    std::optional<WinnerRow> row = find_winner(connection, id);
    if (!row || !row->intact) {
      ++counts.damaged_winners;
      continue;
    }
    ++counts.winners;
    std::optional<TuningRecord> tuning = intact_tuning(connection, id, counts.damaged_tunings);
    visit(to_entry(*std::move(row), std::move(tuning)));
  }
  return counts;
}

PutOutcome put_entry(Connection& connection, const Entry& entry) {
  const std::int64_t device = put_larger_device(connection, entry.key.device);
  const std::int64_t toolchain = put_toolchain(connection, entry.key.toolchain);
  std::optional<WinnerRow> row = find_same_key(connection, device, toolchain, entry.key.problem);
  const bool has_old = row.has_value();
  if (row) {
    const std::int64_t id = row->stored.id;
    if (row->intact) {
      std::int64_t damaged_tunings = 0;
      const Entry old = to_entry(std::move(*row), intact_tuning(connection, id, damaged_tunings));
      if (damaged_tunings == 0 && entry_digest(old) == entry_digest(entry)) return PutOutcome::unchanged;
      if (is_better(old, entry)) return PutOutcome::kept;
    }
    connection.prepare("DELETE FROM winner WHERE id = ?").bind(id).run();
  }
  WinnerRow next;
  next.stored.key = entry.key;
  next.stored.winner = entry.winner;
  next.stored.created_at = entry.created_at;
  next.stored.binary_digest = entry.binary;
  const std::int64_t id = insert_winner(connection, device, toolchain, next);
  if (entry.tuning) insert_tuning(connection, id, *entry.tuning);
  return has_old ? PutOutcome::replaced : PutOutcome::added;
}

bool copy_binary(Connection& from, Connection& to, std::string_view digest, std::int64_t& copied) {
  if (read_binary(to, digest)) return true;
  const std::optional<BinaryRecord> binary = read_binary(from, digest);
  if (!binary) return false;
  put_binary(to, *binary);
  ++copied;
  return true;
}

void remove_orphans(Connection& connection) {
  connection.execute("DELETE FROM binary WHERE digest NOT IN (SELECT binary FROM winner)");
  for (const char* name : {"device", "toolchain"})
    connection.execute(fmt::format("DELETE FROM {0} WHERE id NOT IN (SELECT {0} FROM winner UNION SELECT {0} FROM claim"
                                   " UNION SELECT {0} FROM missed)", name));
}

}  // namespace hone::cache
