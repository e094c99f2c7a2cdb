// Export and Import: entries out of a cache file one after the other, and from elsewhere into one.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "cache/maintenance/entry.h"
#include "cache/maintenance/entry_rows.h"
#include "cache/maintenance/merge.h"

namespace hone::cache {

/// Who receives an export.
struct ExportVisitor {
  std::function<void(const std::string& digest, const BinaryRecord&)> binary;  ///< before the first that refers to it
  std::function<void(const Entry&)> entry;
  std::function<bool(const Entry&)> wanted = [](const Entry&) { return true; };
};

/// Visits the intact winners of a file in the order of each_entry(), and their intact binaries once each; none where
/// `visitor.binary` is empty. One of them is in memory at a time. A file that does not exist has none. Throws
/// StoreError, also where all winners of a file are damaged.
PassCounts export_entries(const std::filesystem::path& path, const ExportVisitor& visitor);

/// Collects entries beside a cache file, and then merges them into it. Until merge_into() the file is not touched, not
/// even locked, however long collecting takes. Needs little memory, and room for the entries in the folder for
/// temporary files. Not movable. Throws StoreError.
class Import {
 public:
  /// `destination` is only named in errors.
  explicit Import(const std::filesystem::path& destination);
  ~Import();

  /// Returns the digest that entries refer to it by.
  std::string add(const BinaryRecord& binary);

  /// False where there was an entry with this key already: the import holds the better one of the two.
  bool add(const Entry& entry);

  /// As merge(). Ends the import.
  CopyCounts merge_into(const std::filesystem::path& destination, const MergeOptions& options);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hone::cache
