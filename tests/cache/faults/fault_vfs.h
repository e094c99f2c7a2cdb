// FaultVfs: stands between SQLite and the operating system, and lets a test see, stop or fail every call.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace hone::cache {

enum class Call {
  open,
  close,
  read,
  write,
  truncate,
  sync,
  file_size,
  lock,
  unlock,
  check_lock,
  access,
  remove,
  rename,
};

/// One call on its way to the operating system.
struct Operation {
  Call call{};
  std::string path;
  std::string target;                ///< of a rename
  bool creates = false;              ///< an open that makes the file when it is missing
  bool is_journal = false;           ///< of an open
  bool syncs_folder = false;         ///< of a remove
  std::int64_t offset = 0;           ///< of a read or write; the new size for truncate
  std::span<const std::byte> bytes;  ///< of a write; valid during the call

  /// Returns true if it changes what is on the disk.
  bool is_change() const;
};

/// While it lives, it is SQLite's default VFS, so that the code under test needs no seam; rename() and renameat2() of
/// the whole process pass through it, too. One at a time, made before any connection is open, used by one thread. Calls
/// that pass go to the VFS that was the default before.
class FaultVfs {
 public:
  /// Sees each call before it is made. SQLITE_OK lets it pass; any other code is its result, and it is not made.
  using Hook = std::function<int(const Operation&)>;

  explicit FaultVfs(Hook hook);
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  int ask(const Operation& operation) const { return hook_(operation); }
  sqlite3_vfs* real() const { return real_; }

 private:
  Hook hook_;
  sqlite3_vfs* real_;
  sqlite3_vfs vfs_;
};

/// The error that a failing device gives for a call; SQLITE_OK where SQLite ignores the result.
int io_error(Call call);

}  // namespace hone::cache
