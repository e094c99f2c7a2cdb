#include "cache/maintenance/put_in_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>

#include "cache/errors.h"
#include "cache/mount_locks.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, std::string_view what) {
  const std::string reason = std::generic_category().message(errno);
  const StoreFault fault = errno == ENOSPC ? StoreFault::full : StoreFault::read_only;
  throw store_error(path, fault, fmt::format("{}: {}", what, reason));
}

/// A rename is only certain once its folder is. Some file systems cannot do that; there is nothing more to be done.
void sync_folder_of(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

fs::path unused_name(const fs::path& path, std::string_view suffix) {
  fs::path name = path;
  name += suffix;
  for (int number = 2; fs::exists(fs::symlink_status(name)); ++number) {
    name = path;
    name += fmt::format("{}.{}", suffix, number);
  }
  return name;
}

fs::path own_name(const fs::path& path, std::string_view suffix) {
  return unused_name(path, fmt::format("{}-{}-{}", suffix, this_machine(), ::getpid()));
}

void put_in_place(const fs::path& finished, const fs::path& path) {
  if (::rename(finished.c_str(), path.c_str()) != 0) fail(path, "the new file cannot be put in its place");
  sync_folder_of(path);
}

fs::path put_in_place_keeping(const fs::path& finished, const fs::path& path, const fs::path& backup) {
  if (::renameat2(AT_FDCWD, finished.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    const bool renamed = ::rename(finished.c_str(), backup.c_str()) == 0;
    sync_folder_of(path);
    return renamed ? backup : finished;
  }
  // Not every file system can exchange two names.
  if (::link(path.c_str(), backup.c_str()) != 0) fail(path, "no backup of it can be made");
  put_in_place(finished, path);
  return backup;
}

void on_behalf_of(const UnfinishedFile& unfinished, const fs::path& path, const std::function<void()>& work) {
  try {
    work();
  } catch (const StoreError& error) {
    if (error.path() != unfinished.path()) throw;
    throw store_error(path, error.fault(), error.detail());
  }
}

UnfinishedFile::~UnfinishedFile() {
  if (path_.empty()) return;
  try {
    std::error_code ignored;
    fs::remove(path_, ignored);
    fs::remove(fs::path(path_) += "-journal", ignored);
  } catch (const std::bad_alloc&) {
    // Then it stays, under a name that says what it is.
  }
}

}  // namespace hone::cache
