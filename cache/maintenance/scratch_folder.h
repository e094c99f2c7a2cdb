// ScratchFolder: a folder for files that live as long as one operation.
#pragma once

#include <filesystem>
#include <string_view>

namespace hone::cache {

/// Made in the system's folder for temporary files ($TMPDIR) with mode 0700, removed with all that is in it.
class ScratchFolder {
 public:
  /// Throws StoreError(unopenable) that names `on_behalf_of`, the cache it is needed for.
  explicit ScratchFolder(const std::filesystem::path& on_behalf_of);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  /// A copy of the cache at `path`, for a dry run; a file that does not exist is not copied, but the name is given.
  std::filesystem::path copy_of(const std::filesystem::path& path) const;

 private:
  std::filesystem::path path_;
};

}  // namespace hone::cache
