#include "cache/maintenance/merge.h"

#include <vector>

#include "cache/errors.h"
#include "cache/maintenance/entry_rows.h"
#include "cache/maintenance/open_file.h"
#include "cache/maintenance/scratch_folder.h"
#include "cache/place.h"
#include "cache/transact.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

CopyCounts merge_in_place(const fs::path& destination_path, std::span<const fs::path> sources,
                          bool binaries) {
  CopyCounts total;
  WritingFile destination(destination_path);
  for (const fs::path& source_path : sources) {
    const ReadingFile source(source_path);
    if (source.is_empty()) continue;
    const CopyCounts counts = copy_entries(source.connection(), destination.connection(), {.binaries = binaries});
    refuse_all_damaged(source_path, counts.intact_winners(), counts.damaged_winners);
    total += counts;
  }
  if (total.changes_nothing()) return total;
  remove_orphans(destination.connection());
  destination.commit();
  return total;
}

}  // namespace

CopyCounts merge(const fs::path& destination, std::span<const fs::path> sources, const MergeOptions& options) {
  for (const fs::path& source : sources) {
    if (!file_exists(absolute_path(source))) throw store_error(source, StoreFault::unopenable, "there is no such file");
  }
  const bool exists = file_exists(absolute_path(destination));
  const bool in_order = exists || sources.size() == 1;
  if (in_order && !options.dry_run) return merge_in_place(destination, sources, options.binaries);

  // A new file is made of several elsewhere first, and then copied in the order of each_entry(): so it is the same
  // whatever the order of the sources. A dry run ends there.
  const ScratchFolder folder(destination);
  const fs::path scratch = folder.copy_of(destination);
  const CopyCounts counts = merge_in_place(scratch, sources, options.binaries);
  if (!options.dry_run && !counts.changes_nothing()) {
    merge_in_place(destination, std::vector{scratch}, options.binaries);
  }
  return counts;
}

}  // namespace hone::cache
