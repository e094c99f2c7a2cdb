#include "cache/maintenance/eviction.h"

#include <string>
#include <string_view>
#include <vector>

#include "cache/properties.h"

namespace hone::cache {
namespace {

// A winner that was never loaded counts as used when it was stored.
constexpr std::string_view kBinariesByUse =
    "SELECT w.binary FROM winner w LEFT JOIN usage u ON u.winner = w.id"
    " WHERE w.binary IN (SELECT digest FROM binary)"
    "   AND w.binary NOT IN (SELECT binary FROM winner WHERE id = ?)"
    " GROUP BY w.binary ORDER BY max(coalesce(u.used_at, w.created_at)), w.binary";
constexpr std::string_view kTuningsByUse =
    "SELECT t.winner FROM tuning t JOIN winner w ON w.id = t.winner LEFT JOIN usage u ON u.winner = w.id"
    " WHERE w.id <> ? ORDER BY coalesce(u.used_at, w.created_at), w.id";
constexpr std::string_view kWinnersByUse =
    "SELECT w.id FROM winner w LEFT JOIN usage u ON u.winner = w.id"
    " WHERE w.id <> ? ORDER BY w.tuned, coalesce(u.used_at, w.created_at), w.id";

class Evictor {
 public:
  Evictor(Connection& connection, std::int64_t goal_bytes, std::int64_t spared_winner)
      : connection_(connection), goal_bytes_(goal_bytes), spared_winner_(spared_winner) {}

  EvictionCounts run() {
    EvictionCounts counts;
    // Without trials nothing is slower; without its code a winner costs every process a compile.
    counts.tunings = remove<std::int64_t>(kTuningsByUse, "DELETE FROM tuning WHERE winner = ?");
    counts.binaries = remove<std::string>(kBinariesByUse, "DELETE FROM binary WHERE digest = ?");
    counts.winners = remove<std::int64_t>(kWinnersByUse, "DELETE FROM winner WHERE id = ?");
    return counts;
  }

 private:
  bool is_reached() { return used_bytes(connection_) <= goal_bytes_; }

  /// Deletes one after the other until the goal is reached. Keys first: deleting what a query is reading is undefined.
  template <class Key>
  std::int64_t remove(std::string_view keys_sql, std::string_view delete_sql) {
    if (is_reached()) return 0;
    std::vector<Key> keys;
    {
      Statement statement = connection_.prepare(keys_sql);
      statement.bind(spared_winner_);
      while (statement.step()) statement.read(keys.emplace_back());
    }
    std::int64_t removed = 0;
    for (const Key& key : keys) {
      connection_.prepare(delete_sql).bind(key).run();
      ++removed;
      if (is_reached()) break;
    }
    return removed;
  }

  Connection& connection_;
  std::int64_t goal_bytes_;
  std::int64_t spared_winner_;
};

}  // namespace

std::int64_t used_bytes(Connection& connection) {
  const std::int64_t pages =
      connection.read_number("PRAGMA page_count") - connection.read_number("PRAGMA freelist_count");
  return pages * connection.read_number("PRAGMA page_size");
}

EvictionCounts evict(Connection& connection, std::int64_t goal_bytes, std::int64_t spared_winner) {
  return Evictor(connection, goal_bytes, spared_winner).run();
}

void keep_to_size(Connection& connection, std::int64_t max_bytes, std::int64_t published_winner) {
  if (const std::int64_t own = read_property(connection, kMaxBytesProperty).value_or(0); own > 0) max_bytes = own;
  if (max_bytes <= 0 || used_bytes(connection) <= max_bytes) return;
  evict(connection, max_bytes - max_bytes / 10, published_winner);
}

}  // namespace hone::cache
