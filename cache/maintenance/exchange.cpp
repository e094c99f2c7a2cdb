#include "cache/maintenance/exchange.h"

#include <optional>
#include <unordered_set>
#include <vector>

#include "cache/errors.h"
#include "cache/maintenance/open_file.h"
#include "cache/maintenance/scratch_folder.h"
#include "cache/place.h"
#include "cache/rows.h"
#include "cache/transact.h"

namespace hone::cache {

PassCounts export_entries(const std::filesystem::path& path, const ExportVisitor& visitor) {
  if (!file_exists(absolute_path(path))) return {};
  const ReadingFile file(path);
  if (file.is_empty()) return {};
  Connection& connection = file.connection();
  std::unordered_set<std::string> exported;
  std::int64_t damaged_binaries = 0;
  PassCounts counts = each_entry(connection, [&](Entry&& entry) {
    if (!visitor.wanted(entry)) return;
    if (visitor.binary && exported.insert(entry.binary).second) {
      const std::optional<BinaryRecord> binary = read_binary(connection, entry.binary);
      if (binary) visitor.binary(entry.binary, *binary);
      else ++damaged_binaries;
    }
    visitor.entry(entry);
  });
  refuse_all_damaged(path, counts.winners, counts.damaged_winners);
  counts.damaged_binaries = damaged_binaries;
  return counts;
}

struct Import::State {
  explicit State(const std::filesystem::path& destination)
      : folder(destination), path(folder / "import.sqlite"), file(std::in_place, path) {}

  ScratchFolder folder;
  std::filesystem::path path;
  std::optional<WritingFile> file;
};

Import::Import(const std::filesystem::path& destination) : state_(std::make_unique<State>(destination)) {}
Import::~Import() = default;

std::string Import::add(const BinaryRecord& binary) { return put_binary(state_->file->connection(), binary); }

bool Import::add(const Entry& entry) {
  return put_entry(state_->file->connection(), entry) == PutOutcome::added;
}

CopyCounts Import::merge_into(const std::filesystem::path& destination, const MergeOptions& options) {
  state_->file->commit();
  state_->file.reset();
  return merge(destination, std::vector{state_->path}, options);
}

}  // namespace hone::cache
