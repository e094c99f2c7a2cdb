// repair(): what is intact in a damaged cache file, in a file without damage.
#pragma once

#include <cstdint>
#include <filesystem>

namespace hone::cache {

struct RepairReport {
  bool was_intact = false;  ///< verify() found nothing; the file was left alone

  std::int64_t pages = 0;
  std::int64_t unreadable_pages = 0;
  std::int64_t rows = 0;  ///< found, intact or not

  std::int64_t winners = 0;   ///< saved
  std::int64_t binaries = 0;  ///< saved
  std::int64_t damaged_winners = 0;
  std::int64_t without_code = 0;    ///< of the saved winners: their binary is damaged, or was evicted before
  std::int64_t without_trials = 0;  ///< of the saved winners: their trials are damaged

  std::filesystem::path backup;  ///< what the damaged file is called now
};

/// Puts a new file in the place of the one at `path`, with every row whose digest holds; the damaged file stays beside
/// it as "<path>.damaged". Rows are looked for on every page that can be read, whatever has become of the header, the
/// schema and the trees; so a cache whose schema was changed is repaired, too. Programs that use the cache go on:
/// readers see one file or the other, and a writer that waited writes to the new one.
///
/// Throws StoreError, and leaves the file as it is, where nothing says that it was a cache of ours, or where it is one
/// of a newer Hone.
RepairReport repair(const std::filesystem::path& path);

}  // namespace hone::cache
