#include "cache/guarded_vfs.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <new>
#include <utility>

#include "cache/place.h"

namespace hone::cache {
namespace {

constexpr int kCompanions = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL;

/// "Database File Format", section 3: what a journal begins with, and what ends one that names a super-journal.
constexpr std::array<unsigned char, 8> kJournalMagic{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};

/// The end of such a journal, behind the name: its length and checksum, four bytes each, and the magic. The length
/// decides as it does in SQLite; the checksum does not matter, since no journal of ours ends like that.
int find_super_journal(sqlite3_file* file, bool& found) {
  std::array<unsigned char, 16> tail{};
  sqlite3_int64 size = 0;
  found = false;
  if (const int code = file->pMethods->xFileSize(file, &size); code != SQLITE_OK) return code;
  if (size < static_cast<sqlite3_int64>(tail.size())) return SQLITE_OK;
  const sqlite3_int64 offset = size - static_cast<sqlite3_int64>(tail.size());
  const int code = file->pMethods->xRead(file, tail.data(), static_cast<int>(tail.size()), offset);
  if (code != SQLITE_OK) return code;
  std::int64_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) length = length << 8 | tail[i];
  found = length > 0 && length <= offset && std::equal(kJournalMagic.begin(), kJournalMagic.end(), tail.begin() + 8);
  return SQLITE_OK;
}

}  // namespace

GuardedVfs::GuardedVfs() : base_(sqlite3_vfs_find(nullptr)), table_{*base_, this} {
  name_ = "hone " + std::to_string(reinterpret_cast<std::uintptr_t>(this));
  table_.pNext = nullptr;
  table_.zName = name_.c_str();
  table_.xOpen = open_file;
  table_.xDelete = delete_file;
  if (sqlite3_vfs_register(&table_, 0) != SQLITE_OK) throw std::bad_alloc();
}

GuardedVfs::~GuardedVfs() { sqlite3_vfs_unregister(&table_); }

std::string GuardedVfs::refusal(sqlite3* connection) {
  sqlite3_vfs* vfs = nullptr;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_VFS_POINTER, &vfs);
  return vfs != nullptr && vfs->xOpen == open_file ? of(vfs).refusal_ : std::string();
}

int GuardedVfs::refuse(std::string reason, int code) {
  refusal_ = std::move(reason);
  return code;
}

bool GuardedVfs::is_companion(const std::string& name) const {
  return name == main_ + "-journal" || name == main_ + "-wal";
}

int GuardedVfs::open_file(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  GuardedVfs& self = of(vfs);
  file->pMethods = nullptr;  // where nothing was opened there is nothing to close
  try {
    if ((flags & SQLITE_OPEN_SUPER_JOURNAL) != 0)
      return self.refuse("its journal names another file, which would be deleted", SQLITE_CANTOPEN);
    if ((flags & kCompanions) != 0) return self.open_companion(name, file, flags, out_flags);
    if ((flags & SQLITE_OPEN_MAIN_DB) != 0) {
      self.main_ = name;
      if (!is_file_or_nothing(self.main_)) return self.refuse(self.main_ + " is not a regular file", SQLITE_CANTOPEN);
    }
    return self.base_->xOpen(self.base_, name, file, flags, out_flags);
  } catch (const std::exception&) {
    return SQLITE_NOMEM;
  }
}

int GuardedVfs::open_companion(const char* name, sqlite3_file* file, int flags, int* out_flags) {
  const std::filesystem::path path(name);
  bool existed = false;
  if (std::string doubt = companion_distrust(path, existed); !doubt.empty()) return refuse(doubt, SQLITE_CANTOPEN);
  if (const int code = base_->xOpen(base_, name, file, flags, out_flags); code != SQLITE_OK) return code;
  // In a sticky folder somebody else may have made it in between; what is ours there, nobody else can take away.
  bool exists = false;
  std::string doubt = companion_distrust(path, exists);
  if (doubt.empty() && !exists) doubt = path.native() + " was taken away while it was opened";
  int code = doubt.empty() ? SQLITE_OK : SQLITE_CANTOPEN;
  if (doubt.empty() && existed && (flags & SQLITE_OPEN_MAIN_JOURNAL) != 0) {
    bool names_another = false;
    code = find_super_journal(file, names_another);
    if (names_another) {
      doubt = path.native() + " names another file, which undoing the interrupted write would delete; remove it";
      code = SQLITE_CANTOPEN;
    }
  }
  if (code == SQLITE_OK) return code;
  file->pMethods->xClose(file);
  file->pMethods = nullptr;
  return doubt.empty() ? code : refuse(std::move(doubt), code);
}

int GuardedVfs::delete_file(sqlite3_vfs* vfs, const char* name, int sync_folder) {
  GuardedVfs& self = of(vfs);
  try {
    if (self.is_companion(name)) return self.base_->xDelete(self.base_, name, sync_folder);
    return self.refuse(std::string(name) + " is no file of the cache's, and stays", SQLITE_IOERR_DELETE);
  } catch (const std::exception&) {
    return SQLITE_IOERR_NOMEM;
  }
}

}  // namespace hone::cache
