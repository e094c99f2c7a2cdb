// FastFolder: a fresh folder in memory where there is such a file system: these tests write files a hundred thousand
// times.
#pragma once

#include <filesystem>
#include <string>

namespace hone::cache {

/// Removed with everything in it on destruction.
class FastFolder {
 public:
  FastFolder();
  ~FastFolder();
  FastFolder(const FastFolder&) = delete;
  FastFolder& operator=(const FastFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  /// Removes everything in it.
  void clear() const;

 private:
  std::filesystem::path path_;
};

}  // namespace hone::cache
