#include "runtime/jit/compile_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>
#include <string>

#include "runtime/jit/run_program.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "hone-compile-";
constexpr const char* kLockName = ".in_use";

/// A folder is made before it is locked.
constexpr std::time_t kOldEnoughSeconds = 60;

/// Removes the folder if it is one of ours that nobody uses any more. One without a lock is that of a process that
/// ended before it made it, or while it removed the folder.
void remove_if_stale(const fs::path& folder) {
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid()) return;
  if (std::time(nullptr) - status.st_mtime < kOldEnoughSeconds) return;
  const int lock = open((folder / kLockName).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  const bool is_unused = lock < 0 ? errno == ENOENT : flock(lock, LOCK_EX | LOCK_NB) == 0;
  std::error_code ignored;
  if (is_unused) fs::remove_all(folder, ignored);
  if (lock >= 0) close(lock);
}

void remove_stale(const fs::path& parent) {
  std::error_code failure;
  for (fs::directory_iterator at(parent, failure), end; !failure && at != end; at.increment(failure))
    if (at->path().filename().string().starts_with(kPrefix)) remove_if_stale(at->path());
}

/// Once a process and place.
void remove_stale_once(const fs::path& parent) {
  static std::mutex mutex;
  // Never destroyed: a static Session may compile after main().
  static auto& done = *new std::set<fs::path>;
  const std::scoped_lock lock(mutex);
  if (done.insert(parent).second) remove_stale(parent);
}

}  // namespace

CompileFolder::CompileFolder() {
  std::error_code failure;
  fs::path parent = fs::temp_directory_path(failure);  // $TMPDIR or /tmp
  if (failure) parent = "/tmp";
  remove_stale_once(parent);
  std::string pattern = (parent / std::string(kPrefix)).string() + "XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    throw no_room(parent, std::strerror(errno));
  }
  path_ = pattern;
  // The umask may have taken rights from the owner.
  chmod(path_.c_str(), S_IRWXU);
  lock_ = open((path_ / kLockName).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (lock_ < 0) return;
  fchmod(lock_, S_IRUSR | S_IWUSR);
  flock(lock_, LOCK_EX | LOCK_NB);
}

CompileFolder::~CompileFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace hone
