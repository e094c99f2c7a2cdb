#include "cache/store.h"

#include <chrono>

#include "cache/connection.h"
#include "cache/errors.h"
#include "cache/fields.h"
#include "cache/migration.h"
#include "cache/place.h"
#include "cache/rows.h"
#include "cache/schema.h"

namespace hone::cache {
namespace {

/// An absolute path cannot be taken for one of SQLite's special names ("", ":memory:").
std::filesystem::path absolute_path(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (path.empty()) throw store_error(path, StoreFault::unopenable, "its path is empty");
  if (error) throw store_error(path, StoreFault::unopenable, error.message());
  return absolute;
}

/// Calls `work` with an open connection to the winners at `path`, in one reading transaction. If there is no file, or
/// nothing in it, the result is a default-constructed one.
template <class Work>
auto read_file(const std::filesystem::path& path, Work work) {
  using Result = decltype(work(std::declval<Connection&>()));
  const std::filesystem::path file = absolute_path(path);
  if (!file_exists(file)) return Result{};
  Connection connection(file, Access::read);
  const Transaction transaction(connection, Access::read);
  if (check_schema(connection, file, Access::read) == kEmptyFile) return Result{};
  return work(connection);
}

constexpr std::string_view kServesQuery =
    "WHERE d.kind = ?1 AND d.architecture = ?2 AND d.identity = ?3 AND t.family_digest = ?4"
    " AND (?5 = '' OR t.compiler = ?5) AND w.family = ?6 AND w.operation = ?7 AND w.dtype = ?8 AND w.numerics = ?9"
    " AND w.launch_context = ?10 AND w.alignment = ?11 AND w.first0 <= ?12 AND w.last0 >= ?12"
    " AND w.first1 <= ?13 AND w.last1 >= ?13 AND w.first2 <= ?14 AND w.last2 >= ?14"
    " ORDER BY w.tuned DESC, w.driver = ?15 DESC, w.id DESC";

void bind_query(Statement& statement, const Query& query) {
  statement.bind(query.device.kind).bind(query.device.architecture).bind(query.device.identity);
  statement.bind(query.toolchain.family_digest).bind(query.toolchain.compiler);
  statement.bind(query.family).bind(query.operation).bind(query.dtype).bind(query.numerics);
  statement.bind(query.launch_context).bind(query.alignment);
  for (const std::int64_t extent : query.extents) statement.bind(extent);
  statement.bind(query.toolchain.driver);
}

/// The same once more on the verified row: SQLite may have decided by an index, whose copy of a column can be damaged
/// while the row is not.
bool serves(const KeyRecord& key, const Query& query) {
  const ProblemRecord& problem = key.problem;
  const DeviceRecord& device = key.device;
  for (std::size_t axis = 0; axis < problem.sizes.size(); ++axis) {
    const RangeRecord& range = problem.sizes[axis];
    if (query.extents[axis] < range.first || query.extents[axis] > range.last) return false;
  }
  return device.kind == query.device.kind && device.architecture == query.device.architecture &&
         device.identity == query.device.identity && key.toolchain.family_digest == query.toolchain.family_digest &&
         (query.toolchain.compiler.empty() || key.toolchain.compiler == query.toolchain.compiler) &&
         problem.family == query.family && problem.operation == query.operation && problem.dtype == query.dtype &&
         problem.numerics == query.numerics && problem.launch_context == query.launch_context &&
         problem.alignment == query.alignment;
}

std::optional<Hit> find_hit(Connection& connection, const Query& query) {
  Statement candidates = select_winners(connection, kServesQuery);
  bind_query(candidates, query);
  while (candidates.step()) {
    WinnerRow row = read_winner(candidates);
    if (!row.intact || !serves(row.stored.key, query)) continue;
    std::optional<BinaryRecord> binary = read_binary(connection, row.binary);
    if (!binary) continue;
    const KeyRecord& key = row.stored.key;
    const bool stale_driver = key.toolchain.driver != query.toolchain.driver;
    return Hit{std::move(row.stored.winner), key.problem.sizes, *std::move(binary), stale_driver};
  }
  return std::nullopt;
}

std::int64_t seconds_since_1970() {
  using namespace std::chrono;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

/// Whether `old` stays although `next` has the same key. A damaged one serves nobody and never stays.
bool keeps(Connection& connection, const WinnerRow& old, const WinnerRecord& next) {
  return old.intact && old.stored.winner.tuned && !next.tuned && read_binary(connection, old.binary).has_value();
}

void write_publication(Connection& connection, const Publication& publication) {
  const KeyRecord& key = publication.key;
  const std::int64_t device = put_device(connection, key.device);
  const std::int64_t toolchain = put_toolchain(connection, key.toolchain);
  const std::optional<WinnerRow> old = find_same_key(connection, device, toolchain, key.problem);
  if (old && keeps(connection, *old, publication.winner)) return;
  if (old) remove_winner(connection, *old);
  WinnerRow row;
  row.stored.key = key;
  row.stored.winner = publication.winner;
  row.stored.created_at = seconds_since_1970();
  row.binary = put_binary(connection, publication.binary);
  const std::int64_t id = insert_winner(connection, device, toolchain, row);
  if (publication.tuning) insert_tuning(connection, id, *publication.tuning);
}

}  // namespace

std::optional<Hit> Store::find(const Query& query) const {
  return read_file(path_, [&](Connection& connection) { return find_hit(connection, query); });
}

void Store::publish(const Publication& publication) const {
  const std::filesystem::path file = absolute_path(path_);
  Connection connection(file, Access::write);
  Transaction transaction(connection, Access::write);
  bring_up_to_date(connection, file);
  write_publication(connection, publication);
  transaction.commit();
}

std::vector<StoredWinner> Store::winners() const {
  return read_file(path_, [](Connection& connection) {
    Statement statement = select_winners(connection,
                                         "ORDER BY d.kind, d.name, d.architecture, d.identity, w.family, w.operation,"
                                         " w.dtype, w.alignment, w.first0, w.first1, w.first2, w.id");
    std::vector<StoredWinner> winners;
    while (statement.step()) {
      WinnerRow row = read_winner(statement);
      if (row.intact) winners.push_back(std::move(row.stored));
    }
    return winners;
  });
}

std::optional<TuningRecord> Store::tuning(std::int64_t winner_id) const {
  return read_file(path_, [&](Connection& connection) -> std::optional<TuningRecord> {
    std::optional<TuningRow> row = read_tuning(connection, winner_id);
    if (!row) return std::nullopt;
    if (!row->intact)
      throw store_error(path_, StoreFault::corrupt, "the trials of this winner do not have their digest");
    return std::move(row->tuning);
  });
}

}  // namespace hone::cache
