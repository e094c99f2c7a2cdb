// How a finished file takes the place of another: at once, and so that it outlives a loss of power.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace hone::cache {

/// `path` with `suffix`, or with a number behind it where something has that name already.
std::filesystem::path unused_name(const std::filesystem::path& path, std::string_view suffix);

/// The same with the name of this machine and the number of this process in it, so that nobody else makes it, wherever
/// the folder is mounted.
std::filesystem::path own_name(const std::filesystem::path& path, std::string_view suffix);

/// Renames `finished` to `path`, over whatever is there; both are in one folder. Throws StoreError that names `path`.
void put_in_place(const std::filesystem::path& finished, const std::filesystem::path& path);

/// The same, and what was at `path` is called `backup` afterwards. At no moment is there nothing at `path`. Returns the
/// name of the backup: `finished` in the unlikely case that it cannot be renamed. When it throws, nothing has changed.
std::filesystem::path put_in_place_keeping(const std::filesystem::path& finished, const std::filesystem::path& path,
                                           const std::filesystem::path& backup);

/// Removes a file that was being written, with its journal, when it goes out of scope; nothing where it has been
/// renamed.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(std::filesystem::path path) : path_(std::move(path)) {}
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Nothing is removed any more.
  void keep() { path_.clear(); }

 private:
  std::filesystem::path path_;
};

/// Calls `work`, which writes `unfinished`. What it throws of that file is thrown of `path`, the name that users know.
void on_behalf_of(const UnfinishedFile& unfinished, const std::filesystem::path& path,
                  const std::function<void()>& work);

}  // namespace hone::cache
