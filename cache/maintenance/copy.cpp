#include "cache/maintenance/copy.h"

#include "cache/maintenance/entry_rows.h"

namespace hone::cache {
namespace {

void count(CopyCounts& counts, PutOutcome outcome) {
  switch (outcome) {
    case PutOutcome::added:
      ++counts.added;
      return;
    case PutOutcome::replaced:
      ++counts.replaced;
      return;
    case PutOutcome::kept:
      ++counts.kept;
      return;
    case PutOutcome::unchanged:
      ++counts.unchanged;
      return;
  }
}

}  // namespace

CopyCounts& CopyCounts::operator+=(const CopyCounts& other) {
  added += other.added;
  replaced += other.replaced;
  kept += other.kept;
  unchanged += other.unchanged;
  binaries += other.binaries;
  damaged_winners += other.damaged_winners;
  damaged_tunings += other.damaged_tunings;
  without_code += other.without_code;
  return *this;
}

CopyCounts copy_entries(Connection& from, Connection& to, const CopyOptions& options) {
  CopyCounts counts;
  const PassCounts pass = each_entry(from, [&](Entry&& entry) {
    if (!options.tunings) entry.tuning.reset();
    const PutOutcome outcome = put_entry(to, entry);
    count(counts, outcome);
    if (outcome == PutOutcome::kept || !options.binaries) return;
    if (!copy_binary(from, to, entry.binary, counts.binaries)) ++counts.without_code;
  });
  counts.damaged_winners = pass.damaged_winners;
  counts.damaged_tunings = pass.damaged_tunings;
  return counts;
}

}  // namespace hone::cache
