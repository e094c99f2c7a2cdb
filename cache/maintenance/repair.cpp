#include "cache/maintenance/repair.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <utility>

#include "cache/connection.h"
#include "cache/errors.h"
#include "cache/maintenance/big_endian.h"
#include "cache/maintenance/copy.h"
#include "cache/maintenance/open_file.h"
#include "cache/maintenance/raw_file.h"
#include "cache/maintenance/put_in_place.h"
#include "cache/maintenance/salvage.h"
#include "cache/maintenance/scratch_folder.h"
#include "cache/maintenance/verify.h"
#include "cache/mount_locks.h"
#include "cache/place.h"
#include "cache/properties.h"
#include "cache/schema.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

/// The two numbers that say whose database a file is.
struct Marks {
  std::int64_t application_id = 0;
  std::int64_t version = 0;
};

Marks read_marks(const RawFile& file) {
  std::array<std::byte, 100> header{};
  file.read(0, header);
  const auto number_at = [bytes = std::span(std::as_const(header))](std::size_t offset) {
    return static_cast<std::int64_t>(big_endian(bytes.subspan(offset, 4)));
  };
  return {.application_id = number_at(68), .version = number_at(60)};
}

/// Undoes what a writer that died has left half done, as opening does. A file that is too damaged for that is taken
/// as it is.
void roll_back_leftovers(const fs::path& path) {
  try {
    Connection connection(path, Access::write);
    Transaction transaction(connection, Access::write);
  } catch (const StoreError& error) {
    if (error.fault() == StoreFault::busy) throw;
  }
}

/// SQLite would apply a journal that is left to whatever file has the name.
void take_away_journal(const fs::path& path, const fs::path& backup) {
  const fs::path journal = fs::path(path) += "-journal";
  std::error_code ignored;
  fs::rename(journal, fs::path(backup) += "-journal", ignored);
}

bool is_intact(const fs::path& path) {
  try {
    return verify(path).intact();
  } catch (const StoreError& error) {
    if (error.fault() == StoreFault::newer || error.fault() == StoreFault::busy) throw;
    return false;
  }
}

/// Fills the new file; its rows come from pages of the damaged one.
void build(const fs::path& fresh_path, const RawFile& damaged, const ScratchFolder& folder, RepairReport& report) {
  Connection scratch(folder / "rows.sqlite", Access::write);
  Transaction collecting(scratch, Access::write);
  const SalvageCounts found = salvage(damaged, scratch);
  report.pages = found.pages;
  report.unreadable_pages = found.unreadable_pages;
  report.rows = found.rows;

  WritingFile fresh(fresh_path);
  const CopyCounts copied = copy_entries(scratch, fresh.connection(), {});
  report.winners = copied.added;
  report.binaries = copied.binaries;
  report.damaged_winners = copied.damaged_winners;
  report.without_code = copied.without_code;
  report.without_trials = copied.damaged_tunings;
  if (const auto max_bytes = read_property(scratch, kMaxBytesProperty)) {
    write_property(fresh.connection(), kMaxBytesProperty, *max_bytes);
  }
  fresh.commit();
}

}  // namespace

RepairReport repair(const fs::path& given_path) {
  const fs::path path = resolved_path(given_path);
  if (!file_exists(path)) throw store_error(path, StoreFault::unopenable, "there is no such file");
  RepairReport report;
  report.was_intact = is_intact(path);
  if (report.was_intact) return report;
  require_writer(find_place(path));
  require_locks(path);

  roll_back_leftovers(path);
  RawFile damaged(path);
  damaged.lock_exclusively();
  const Marks marks = read_marks(damaged);
  const bool is_marked = marks.application_id == kApplicationId;
  if (is_marked && marks.version > kSchemaVersion && marks.version < kSchemaVersion + 1000) {
    throw store_error(path, StoreFault::newer, fmt::format("its schema has version {}", marks.version));
  }
  const ScratchFolder folder(path);
  UnfinishedFile fresh(unused_name(path, ".repairing"));
  on_behalf_of(fresh, path, [&] { build(fresh.path(), damaged, folder, report); });
  if (!is_marked && report.winners == 0) {
    throw store_error(path, StoreFault::not_a_database, "neither its header nor any row in it is that of a cache");
  }
  struct ::stat status {};
  if (::stat(path.c_str(), &status) == 0) ::chmod(fresh.path().c_str(), status.st_mode & 07777);
  const fs::path backup = unused_name(path, ".damaged");
  take_away_journal(path, backup);
  report.backup = put_in_place_keeping(fresh.path(), path, backup);
  if (report.backup == fresh.path()) fresh.keep();
  return report;
}

}  // namespace hone::cache
