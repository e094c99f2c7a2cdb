#include "cache/maintenance/prune.h"

#include <vector>

#include "cache/maintenance/entry_rows.h"
#include "cache/maintenance/open_file.h"
#include "cache/maintenance/scratch_folder.h"
#include "cache/place.h"
#include "cache/properties.h"
#include "cache/rows.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

/// Ids of the winners that go. Damaged ones stay: repair() decides about them.
std::vector<std::int64_t> chosen_winners(Connection& connection, const PruneRules& rules, PruneCounts& counts) {
  std::vector<std::int64_t> ids, chosen;
  {
    Statement all = connection.prepare("SELECT id FROM winner");
    while (all.step()) all.read(ids.emplace_back());
  }
  for (const std::int64_t id : ids) {
    ++counts.winners_before;
    const std::optional<WinnerRow> row = find_winner(connection, id);
    if (row && row->intact && rules.removes(row->stored)) chosen.push_back(id);
  }
  return chosen;
}

std::int64_t size_of(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

}  // namespace

PruneCounts prune(const fs::path& given_path, const PruneRules& rules) {
  PruneCounts counts;
  const fs::path real_path = resolved_path(given_path);
  if (!file_exists(real_path)) return counts;
  if (size_of(real_path) == 0 && !rules.limit_bytes) return counts;  // opening it would fill it
  std::optional<ScratchFolder> folder;
  if (rules.dry_run) folder.emplace(real_path);
  const fs::path path = folder ? folder->copy_of(real_path) : real_path;
  counts.bytes_before = size_of(path);
  WritingFile file(path);
  Connection& connection = file.connection();
  for (const std::int64_t id : chosen_winners(connection, rules, counts)) {
    connection.prepare("DELETE FROM winner WHERE id = ?").bind(id).run();
    ++counts.winners;
  }
  remove_orphans(connection);
  if (rules.max_bytes >= 0) {
    counts.evicted = evict(connection, rules.max_bytes, 0);
    remove_orphans(connection);
  }
  if (rules.limit_bytes) write_property(connection, kMaxBytesProperty, *rules.limit_bytes);
  const bool has_free_pages = connection.read_number("SELECT total_changes()") > 0 ||
                              connection.read_number("PRAGMA freelist_count") > 0;
  file.commit();
  if (has_free_pages) file.give_back_free_pages();
  counts.bytes_after = size_of(path);
  return counts;
}

}  // namespace hone::cache
