#include "cache/maintenance/snapshot.h"

#include <sys/stat.h>

#include "cache/errors.h"
#include "cache/maintenance/open_file.h"
#include "cache/maintenance/put_in_place.h"
#include "cache/place.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

/// A mistyped name overwrites nothing but an earlier snapshot, which nobody writes to.
void check_target(const fs::path& source, const fs::path& target) {
  const fs::path folder = target.parent_path();
  if (!fs::is_directory(folder)) {
    throw store_error(target, StoreFault::unopenable, "there is no folder " + folder.native());
  }
  if (!file_exists(target)) return;
  std::error_code error;
  if (fs::equivalent(source, target, error)) {
    throw store_error(target, StoreFault::read_only, "a snapshot of it needs another name", "name another file");
  }
  const ReadingFile earlier(target);
  if (!find_place(target).is_read_only)
    throw store_error(target, StoreFault::read_only,
                      "it is a cache that may be written to, and snapshots replace read-only files (mode 0444) alone",
                      "name another file, or remove this one first");
}

}  // namespace

CopyCounts snapshot(const fs::path& source_path, const fs::path& target_path, const CopyOptions& options) {
  const ReadingFile source(source_path);
  const fs::path target = resolved_path(target_path);
  check_target(source_path, target);
  const UnfinishedFile unfinished(own_name(target, ".unfinished"));
  CopyCounts counts;
  on_behalf_of(unfinished, target, [&] {
    WritingFile file(unfinished.path(), Trust::alone);
    if (!source.is_empty()) counts = copy_entries(source.connection(), file.connection(), options);
    refuse_all_damaged(source_path, counts.intact_winners(), counts.damaged_winners);
    file.commit();
    file.connection().execute("VACUUM");
  });
  ::chmod(unfinished.path().c_str(), S_IRUSR | S_IRGRP | S_IROTH);
  put_in_place(unfinished.path(), target);
  return counts;
}

}  // namespace hone::cache
