// CompileFolder: a private folder for compilers, removed with everything in it.
#pragma once

#include <filesystem>

namespace hone {

/// "hone-compile-…" in $TMPDIR or /tmp. A file in it is locked for as long as the folder is in use: what a process
/// left that was ended by a signal is removed by the first one of the same user that makes a folder in the same place,
/// when it is a minute old.
class CompileFolder {
 public:
  /// Throws io_failed. Thread-safe.
  CompileFolder();
  ~CompileFolder();
  CompileFolder(const CompileFolder&) = delete;
  CompileFolder& operator=(const CompileFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace hone
