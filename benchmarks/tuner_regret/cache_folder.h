// CacheFolder: a new folder for the cache files of a study.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <hone/error.h>

namespace hone::benchmarks {

/// A new folder for cache files, which goes with it unless it is to be kept in `keep`.
class CacheFolder {
 public:
  /// Throws Error(io_failed) where no such folder can be made.
  CacheFolder(const std::string& keep, const std::string& name) : is_kept_(!keep.empty()) {
    namespace fs = std::filesystem;
    std::string path = is_kept_ ? (fs::path(keep) / name).string()
                                : (fs::temp_directory_path() / "hone_regret_XXXXXX").string();
    std::error_code failure;
    const bool is_made = is_kept_ ? fs::create_directories(path, failure) : mkdtemp(path.data()) != nullptr;
    if (!is_made) throw Error(ErrorCode::io_failed, "no new folder could be made: " + path);
    path_ = path;
  }
  ~CacheFolder() {
    std::error_code ignored;
    if (!is_kept_) std::filesystem::remove_all(path_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  bool is_kept() const { return is_kept_; }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(const std::string& name) const { return path_ / (name + ".sqlite"); }

 private:
  bool is_kept_;
  std::filesystem::path path_;
};

}  // namespace hone::benchmarks
