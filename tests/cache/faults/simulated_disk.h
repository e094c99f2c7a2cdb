// SimulatedDisk: what a publication asked of the disk, and what may be left of it when the power fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/cache/faults/fault_vfs.h"

namespace hone::cache {

/// A model of a disk under a file system that keeps the order of changes to folders, but not of writes: what was synced
/// stays; of the rest each sector of 512 bytes holds its last synced content or that of any later write, independently
/// of all others, and a sector beyond the synced end of its file may hold anything.
///
/// As SQLite's unix VFS does it, the first sync of a journal syncs its folder, and so does a deletion that says so.
class SimulatedDisk {
 public:
  using Bytes = std::vector<std::byte>;

  /// The files that are in the folder now are taken as synced.
  explicit SimulatedDisk(std::filesystem::path folder);

  /// Takes note of a call that is about to succeed.
  void apply(const Operation& operation);

  /// The files of the folder after a power loss at this moment; a different outcome at each call.
  std::map<std::string, Bytes> after_power_loss(std::mt19937& random) const;

 private:
  struct Change {
    bool is_truncation = false;
    std::int64_t offset = 0;  ///< the new size of a truncation
    Bytes bytes;
  };
  struct File {
    Bytes synced;
    std::vector<Change> pending;
    bool syncs_folder = false;  ///< with its next sync
  };
  struct FolderChange {
    std::string name;
    std::optional<std::size_t> file;  ///< nullopt: removed
  };
  using Folder = std::map<std::string, std::size_t>;

  static Bytes written(const File& file);
  static Bytes torn(const File& file, std::mt19937& random);
  void change_folder(FolderChange change);
  void sync_folder();

  std::filesystem::path path_;
  std::vector<File> files_;
  Folder now_;
  Folder synced_;
  std::vector<FolderChange> pending_;
};

}  // namespace hone::cache
