// GuardedVfs: which files SQLite may open and delete on behalf of one cache file.
#pragma once

#include <sqlite3.h>

#include <string>

namespace hone::cache {

/// SQLite's own file access, for one connection, that leaves everything else on the machine alone. It opens the cache
/// file, its journal and its write-ahead log, and only where each is a regular file that nobody but the user and root
/// can have made; it deletes only those two. A journal that names a super-journal is refused: SQLite would read the
/// file of that name and delete it, and the cache never writes one. Nothing here blocks on a FIFO or a device.
///
/// Not movable; lives until its connection is closed. Used by the connection's thread.
class GuardedVfs {
 public:
  /// Over what is SQLite's default now. Throws std::bad_alloc.
  GuardedVfs();
  ~GuardedVfs();
  GuardedVfs(const GuardedVfs&) = delete;
  GuardedVfs& operator=(const GuardedVfs&) = delete;

  /// For sqlite3_open_v2().
  const char* name() const { return name_.c_str(); }

  /// Why the connection was refused a file last; "": it never was, or it has no GuardedVfs.
  static std::string refusal(sqlite3* connection);

 private:
  struct Table : sqlite3_vfs {
    GuardedVfs* self;
  };

  static GuardedVfs& of(sqlite3_vfs* vfs) { return *static_cast<Table*>(vfs)->self; }
  static int open_file(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags);
  static int delete_file(sqlite3_vfs* vfs, const char* name, int sync_folder);

  int open_companion(const char* name, sqlite3_file* file, int flags, int* out_flags);
  bool is_companion(const std::string& name) const;
  int refuse(std::string reason, int code);

  sqlite3_vfs* const base_;
  std::string name_;
  std::string main_;  ///< the cache file's name
  std::string refusal_;
  Table table_;
};

}  // namespace hone::cache
