#include "cache/store.h"

#include <chrono>
#include <tuple>

#include "cache/claims.h"
#include "cache/errors.h"
#include "cache/identity.h"
#include "cache/limits.h"
#include "cache/maintenance/eviction.h"
#include "cache/notes.h"
#include "cache/row_sql.h"
#include "cache/rows.h"
#include "cache/step.h"
#include "cache/transact.h"

namespace hone::cache {
namespace {

/// For what nobody is hurt by not writing.
constexpr std::chrono::milliseconds kShortPatience(100);

/// Others wait for what is released.
constexpr std::chrono::milliseconds kReleasePatience(1000);

/// Ids of the rows that `statement` selects, as SQL writes a list, where `agrees` with the texts that follow them.
template <std::size_t kTexts, class Agrees>
std::string ids_where(Statement statement, const Agrees& agrees) {
  std::string ids;
  while (statement.step()) {
    std::int64_t id = 0;
    std::array<std::string, kTexts> texts;
    statement.read(id);
    for (std::string& text : texts) statement.read(text);
    if (agrees(texts)) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", id);
  }
  return ids;
}

/// True if rows of `device` are meant.
bool is_asked(const DeviceRecord& device, const Query& query) {
  if (query.devices == Devices::similar) return device.kind == query.device.kind && !same_device(device, query.device);
  return same_device(device, query.device);
}

bool is_asked(const ToolchainRecord& toolchain, const Query& query) {
  return toolchain.family_digest == query.toolchain.family_digest &&
         same_options(toolchain.compiler, query.toolchain.compiler);
}

/// All of the key but launch context, alignment and extents; then `condition`.
Statement select_with_key(Connection& connection, const Query& query, std::string_view condition) {
  Statement devices = connection.prepare("SELECT id, architecture, identity FROM device WHERE kind = ?");
  devices.bind(query.device.kind);
  const auto is_device = [&](const std::array<std::string, 2>& texts) {
    return is_asked(DeviceRecord{.kind = query.device.kind, .name = {}, .architecture = texts[0], .identity = texts[1]},
                    query);
  };
  Statement toolchains = connection.prepare("SELECT id, compiler FROM toolchain WHERE family_digest = ?");
  toolchains.bind(query.toolchain.family_digest);
  const auto is_toolchain = [&](const std::array<std::string, 1>& texts) {
    return same_options(texts[0], query.toolchain.compiler);
  };
  const auto stored = [&](std::string_view name) { return stored_name(name, connection.schema_version()); };
  Statement statement = select_winners(
      connection,
      fmt::format("WHERE d.id IN ({}) AND t.id IN ({}) AND w.family = ?1 AND w.operation = ?2 AND w.dtype = ?3"
                  " AND {} = ?4 AND {} = ?5{}",
                  ids_where<2>(std::move(devices), is_device), ids_where<1>(std::move(toolchains), is_toolchain),
                  stored("numerics"), stored("objective"), condition));
  statement.bind(query.family).bind(query.operation).bind(query.dtype).bind(query.numerics).bind(query.objective);
  return statement;
}

constexpr std::string_view kServesExtents =
    " AND w.launch_context = ?6 AND w.alignment = ?7"
    " AND w.first0 <= ?8 AND w.last0 >= ?8 AND w.first1 <= ?9 AND w.last1 >= ?9"
    " AND w.first2 <= ?10 AND w.last2 >= ?10"
    " ORDER BY w.tuned DESC, w.driver = ?11 DESC, t.compiler = ?12 DESC, w.created_at DESC, w.id DESC";

constexpr std::string_view kTunedNear =
    " AND w.tuned = 1 AND (w.first0 <= ?6 AND w.last0 >= ?6 AND w.first1 <= ?7 AND w.last1 >= ?7"
    " AND w.first2 <= ?8 AND w.last2 >= ?8 OR w.extent0 BETWEEN ?9 AND ?10 AND w.extent1 BETWEEN ?11 AND ?12"
    " AND w.extent2 BETWEEN ?13 AND ?14)";

/// The same once more on the verified row: SQLite may have decided by an index, whose copy of a column can be damaged
/// while the row is not.
bool has_key(const KeyRecord& key, const Query& query) {
  const ProblemRecord& problem = key.problem;
  return is_asked(key.device, query) && is_asked(key.toolchain, query) &&
         std::tie(problem.family, problem.operation, problem.dtype, problem.numerics, problem.objective) ==
             std::tie(query.family, query.operation, query.dtype, query.numerics, query.objective);
}

bool has_whole_key(const KeyRecord& key, const Query& query) {
  return has_key(key, query) && key.problem.launch_context == query.launch_context &&
         key.problem.alignment == query.alignment;
}

/// When a winner was last loaded; 0 if that is not known. Version 1 did not tell.
std::int64_t read_used_at(Connection& connection, std::int64_t version, std::int64_t winner_id) {
  if (version < 2) return 0;
  Statement statement = connection.prepare("SELECT used_at FROM usage WHERE winner = ?");
  statement.bind(winner_id);
  std::int64_t used_at = 0;
  if (statement.step()) statement.read(used_at);
  return used_at;
}

constexpr std::string_view kInOrder =
    "ORDER BY d.kind, d.name, d.architecture, d.identity, w.family, w.operation, w.dtype, w.alignment, w.first0,"
    " w.first1, w.first2, w.id";

/// Takes what time it needs: the rows of our own tables are as many as the file has room for, and a person has asked.
std::vector<StoredWinner> read_intact(Connection& connection, Statement rows, std::uint64_t* damaged) {
  connection.lift_deadline();
  std::vector<StoredWinner> winners;
  while (rows.step()) {
    WinnerRow row = read_winner(rows);
    if (row.intact) winners.push_back(std::move(row.stored));
    else if (damaged != nullptr) ++*damaged;
  }
  return winners;
}

/// The tuning that left an untuned winner; nullopt for a choice without measuring, and where the digest does not hold.
std::optional<Attempt> read_attempt(Connection& connection, std::int64_t winner_id) {
  const std::optional<TuningRow> row = read_tuning(connection, winner_id);
  if (!row || !row->intact) return std::nullopt;
  return Attempt{.started_at = row->tuning.started_at, .ms = row->tuning.compile_ms + row->tuning.measure_ms};
}

/// The code of a winner; nullopt if it was evicted or is damaged.
std::optional<BinaryRecord> read_code(Connection& connection, const std::string& digest) {
  const Step step("read code");
  return read_binary(connection, digest);
}

std::optional<Hit> find_hit(Connection& connection, const Query& query, std::uint64_t& damaged) {
  const Step step("find winner");
  Statement candidates = select_with_key(connection, query, kServesExtents);
  candidates.bind(query.launch_context).bind(query.alignment);
  for (const std::int64_t extent : query.extents) candidates.bind(extent);
  candidates.bind(query.toolchain.driver).bind(query.toolchain.compiler);
  std::optional<Hit> without_code;
  while (candidates.step()) {
    WinnerRow row = read_winner(candidates);
    if (!row.intact || !has_whole_key(row.stored.key, query) ||
        !is_within(query.extents, row.stored.key.problem.sizes)) {
      ++damaged;
      continue;
    }
    const KeyRecord& key = row.stored.key;
    Hit hit{.winner = std::move(row.stored.winner),
            .sizes = key.problem.sizes,
            .binary = {},
            .stale_driver = key.toolchain.driver != query.toolchain.driver,
            .other_compiler = !query.toolchain.compiler.empty() && key.toolchain.compiler != query.toolchain.compiler,
            .winner_id = row.stored.id};
    if (!hit.winner.tuned) hit.attempt = read_attempt(connection, hit.winner_id);
    if (query.code == CodeUse::never) return hit;
    if (without_code && (without_code->winner.tuned != hit.winner.tuned ||
                         without_code->stale_driver != hit.stale_driver)) {
      break;
    }
    hit.binary = read_code(connection, row.stored.binary_digest);
    if (hit.binary) return hit;
    if (row.stored.binary_bytes > 0) ++damaged;  // otherwise it was evicted
    if (query.code == CodeUse::optional && !without_code) without_code = std::move(hit);
  }
  return without_code;
}

void add_near_winners(Connection& connection, const Query& query, std::size_t index,
                      const std::array<RangeRecord, 3>& extents, std::vector<NearWinner>& near) {
  Statement rows = select_with_key(connection, query, kTunedNear);
  for (const std::int64_t extent : query.extents) rows.bind(extent);
  for (const RangeRecord& range : extents) rows.bind(range.first).bind(range.last);
  while (rows.step()) {
    WinnerRow row = read_winner(rows);
    const WinnerRecord& winner = row.stored.winner;
    KeyRecord& key = row.stored.key;
    const bool is_near = is_within(winner.tuned_extents, extents) || is_within(query.extents, key.problem.sizes);
    if (!row.intact || !has_key(key, query) || !winner.tuned || !is_near) continue;
    near.push_back({.query = index,
                    .winner = winner,
                    .device = std::move(key.device),
                    .problem = std::move(key.problem),
                    .stale_driver = key.toolchain.driver != query.toolchain.driver});
  }
}

/// Code is only ever taken from files that nobody else can have written.
Trust needed_trust(const Query& query) { return query.code == CodeUse::never ? Trust::any : Trust::owned; }

std::int64_t seconds_since_1970() {
  using namespace std::chrono;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

/// True if `old` stays although `next` has the same key. A damaged one serves nobody and never stays.
bool keeps(Connection& connection, const WinnerRow& old, const Publication& next) {
  if (!old.intact || next.winner.tuned) return false;
  const bool is_worth_more = old.stored.winner.tuned || (!next.tuning && read_attempt(connection, old.stored.id));
  return is_worth_more && read_binary(connection, old.stored.binary_digest).has_value();
}

bool fulfils(const Hit& hit, const Need& need) {
  if (hit.winner.tuned) return true;
  return hit.attempt && hit.attempt->rules_out(need.budget_ms, seconds_since_1970());
}

/// Returns the id of the new winner; 0 where the old one stays.
std::int64_t write_publication(Connection& connection, const Publication& publication) {
  const DeviceRow shared = share_device(connection, publication.key.device);
  KeyRecord key = publication.key;
  key.device = shared.device;
  const std::int64_t device = shared.id;
  const std::int64_t toolchain = put_toolchain(connection, key.toolchain);
  const std::optional<WinnerRow> old = find_same_key(connection, device, toolchain, key.problem);
  if (old && keeps(connection, *old, publication)) return 0;
  if (old) remove_winner(connection, *old);
  WinnerRow row;
  row.stored.key = key;
  row.stored.winner = publication.winner;
  row.stored.created_at = seconds_since_1970();
  row.stored.binary_digest = put_binary(connection, publication.binary);
  const std::int64_t id = insert_winner(connection, device, toolchain, row);
  if (publication.tuning) insert_tuning(connection, id, *publication.tuning);
  if (publication.winner.tuned || publication.tuning) end_claims(connection, key, device, toolchain);
  if (publication.winner.tuned) end_misses(connection, key, device, toolchain);
  return id;
}

}  // namespace

std::string max_bytes_fault(std::int64_t max_bytes, bool has_none) {
  if (max_bytes >= kLeastMaxBytes || (has_none && max_bytes == 0)) return "";
  return fmt::format("{} bytes have no room for winners, since an empty file takes 80 KiB; give at least {} (1Mi){}",
                     max_bytes, kLeastMaxBytes, has_none ? ", or 0 for no limit" : ", or delete the file");
}

std::optional<Hit> Store::find(const Query& query, std::uint64_t* damaged) const {
  std::uint64_t uncounted = 0;
  return read_file(path_, needed_trust(query), [&](Connection& connection, std::int64_t version) {
    std::optional<Hit> hit = find_hit(connection, query, damaged != nullptr ? *damaged : uncounted);
    if (hit) hit->used_at = read_used_at(connection, version, hit->winner_id);
    return hit;
  });
}

std::vector<NearWinner> Store::find_near(std::span<const Query> queries,
                                         const std::array<RangeRecord, 3>& extents) const {
  if (queries.empty()) return {};
  return read_file(path_, needed_trust(queries.front()), [&](Connection& connection, std::int64_t) {
    std::vector<NearWinner> near;
    for (std::size_t i = 0; i < queries.size(); ++i) add_near_winners(connection, queries[i], i, extents, near);
    return near;
  });
}

void Store::publish(std::span<const Publication> publications, Milliseconds patience) const {
  write_file(path_, patience, [&](Connection& connection) {
    for (const Publication& publication : publications) {
      const std::int64_t id = write_publication(connection, publication);
      if (id != 0) keep_to_size(connection, max_bytes_, id);
    }
  });
}

void Store::publish(std::span<const Publication> publications) const { publish(publications, kWritePatience); }

ClaimState Store::claim(const KeyRecord& key, const Need* need, const std::string& owner, Milliseconds lease,
                        Milliseconds patience) const {
  ClaimState state = ClaimState::held;
  write_file(path_, patience, [&](Connection& connection) {
    std::uint64_t uncounted = 0;
    const std::optional<Hit> hit = need != nullptr ? find_hit(connection, need->query, uncounted) : std::nullopt;
    if (hit && fulfils(*hit, *need)) {
      state = ClaimState::served;
    } else {
      state = take_claim(connection, key, owner, lease) ? ClaimState::taken : ClaimState::held;
    }
  });
  return state;
}

bool Store::renew(const KeyRecord& key, const std::string& owner, Milliseconds lease) const {
  bool is_ours = false;
  write_file(path_, kShortPatience,
             [&](Connection& connection) { is_ours = renew_claim(connection, key, owner, lease); });
  return is_ours;
}

void Store::release(const KeyRecord& key, const std::string& owner) const {
  write_file(path_, kReleasePatience, [&](Connection& connection) { release_claim(connection, key, owner); });
}

bool Store::is_claimed(const KeyRecord& key) const {
  return read_file(path_, Trust::owned, [&](Connection& connection, std::int64_t version) {
    return version >= 2 && cache::is_claimed(connection, key);
  });
}

void Store::note(const Notes& notes, Milliseconds patience) const {
  write_file(path_, patience, [&](Connection& connection) { write_notes(connection, notes, seconds_since_1970()); });
}

std::optional<LimitsRecord> Store::limits(const LimitsRecord& key) const {
  std::optional<LimitsRecord> found = read_file(
      path_, Trust::any, [&](Connection& connection, std::int64_t) { return find_limits(connection, key); });
  const std::int64_t age = found ? seconds_since_1970() - found->measured_at : 0;
  return age < 0 || age > kLimitsLifetimeS ? std::nullopt : found;
}

LimitsRecord Store::publish(const LimitsRecord& limits) const {
  LimitsRecord stored;
  write_file(path_, kShortPatience, [&](Connection& connection) { stored = put_limits(connection, limits); });
  return stored;
}

std::vector<StoredMiss> Store::misses() const {
  return read_file(path_, Trust::any, [](Connection& connection, std::int64_t version) {
    return version < 2 ? std::vector<StoredMiss>{} : read_misses(connection);
  }, kWritePatience);
}

std::vector<StoredWinner> Store::winners(std::uint64_t* damaged) const {
  return read_file(path_, Trust::any, [&](Connection& connection, std::int64_t) {
    return read_intact(connection, select_winners(connection, kInOrder), damaged);
  }, kWritePatience);
}

std::vector<StoredWinner> Store::winners(std::string_view family, std::string_view operation,
                                         std::uint64_t* damaged) const {
  return read_file(path_, Trust::any, [&](Connection& connection, std::int64_t) {
    Statement statement =
        select_winners(connection, std::string("WHERE w.family = ? AND w.operation = ? ").append(kInOrder));
    statement.bind(family).bind(operation);
    std::vector<StoredWinner> winners = read_intact(connection, std::move(statement), damaged);
    std::erase_if(winners, [&](const StoredWinner& stored) {  // as has_key()
      return stored.key.problem.family != family || stored.key.problem.operation != operation;
    });
    return winners;
  }, kWritePatience);
}

std::optional<TuningRecord> Store::tuning(std::int64_t winner_id) const {
  FoundTuning found = std::move(tunings(std::span(&winner_id, 1)).front());
  if (found.is_damaged)
    throw store_error(path_, StoreFault::corrupt, "the trials of this winner do not have their digest");
  return std::move(found.tuning);
}

std::vector<FoundTuning> Store::tunings(std::span<const std::int64_t> winner_ids) const {
  std::vector<FoundTuning> found = read_file(path_, Trust::any, [&](Connection& connection, std::int64_t) {
    std::vector<FoundTuning> read;
    for (const std::int64_t id : winner_ids) {
      std::optional<TuningRow> row = read_tuning(connection, id);
      FoundTuning& last = read.emplace_back(FoundTuning{.tuning = {}, .is_damaged = row && !row->intact});
      if (row && row->intact) last.tuning = std::move(row->tuning);
    }
    return read;
  }, kWritePatience);
  found.resize(winner_ids.size());  // without a file, nothing was read
  return found;
}

}  // namespace hone::cache
