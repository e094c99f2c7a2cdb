#include "runtime/dispatch/share_folders.h"

#include <dlfcn.h>
#include <link.h>

#include <system_error>

namespace hone {
namespace {

/// lib/libhone.so.0 and bin/hone are one folder below the prefix, lib/x86_64-linux-gnu/libhone.so.0 two.
constexpr int kMostLevels = 2;

/// The file that has this function. A program's own name may be relative, or only that of a command.
std::filesystem::path own_file() {
  ::Dl_info info{};
  ::link_map* map = nullptr;
  const void* const here = reinterpret_cast<const void*>(&own_file);
  std::error_code error;
  if (::dladdr1(here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0 && map && map->l_name &&
      *map->l_name)
    return std::filesystem::canonical(map->l_name, error);
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

}  // namespace

std::vector<std::filesystem::path> share_folders() {
  std::vector<std::filesystem::path> folders;
  std::filesystem::path folder = own_file().parent_path();
  for (int level = 0; level < kMostLevels && folder.has_relative_path(); ++level) {
    folder = folder.parent_path();
    std::error_code error;
    const std::filesystem::path share = folder / "share" / "hone";
    if (std::filesystem::is_directory(share, error)) folders.push_back(share);
  }
  return folders;
}

}  // namespace hone
