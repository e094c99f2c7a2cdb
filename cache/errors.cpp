#include "cache/errors.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <ios>
#include <string>
#include <system_error>

#include "cache/guarded_vfs.h"
#include "cache/shell_quoted.h"
#include "cache/shipped_winners.h"

namespace hone::cache {
namespace {

struct FaultText {
  StoreFault fault;
  std::string_view found;
  std::string_view advice;  ///< {}: repair_command()
};

constexpr std::array<FaultText, 11> kFaultTexts{{
    {StoreFault::unopenable, "cannot be opened", "check the path and its permissions, or name another file"},
    {StoreFault::not_a_database, "is a file of another kind", "name another file"},
    {StoreFault::foreign, "is an SQLite database, but not Hone's",
     "name another file, or if it was Hone's save its rows with: {}"},
    {StoreFault::newer, "was written by a newer Hone", "use that one, or name another file"},
    {StoreFault::read_only, "cannot be written to", "make it and its folder writable, or name another file"},
    {StoreFault::busy, "is locked by another process", "try again when that is done, or name another file"},
    {StoreFault::corrupt, "is damaged",
     "delete it (its winners are tuned again), name another file, or save what is intact with: {}"},
    {StoreFault::full, "has no space left to grow", "free some, or name a file elsewhere"},
    {StoreFault::untrusted, "is not trusted with code",
     "give it and its folders to yourself or to root with nobody else able to write (chmod go-w), or name another"
     " file"},
    {StoreFault::unlocked, "cannot be written to safely",
     "name a file on a disk of this machine and put it in place with hone cache snapshot; or if one machine alone uses"
     " the file, write its host name into the file of the same name with .machine behind it"},
    {StoreFault::failed, "failed", "name another file if this persists"},
}};

struct CodeFault {
  int code;
  StoreFault fault;
};

/// Extended codes before the primary codes that they refine; the first match counts.
constexpr std::array<CodeFault, 17> kCodeFaults{{
    {SQLITE_READONLY_ROLLBACK, StoreFault::unopenable},  // a reader may not finish what a dead writer left
    {SQLITE_READONLY_RECOVERY, StoreFault::unopenable},
    {SQLITE_READONLY_CANTINIT, StoreFault::unopenable},
    {SQLITE_IOERR_SHORT_READ, StoreFault::corrupt},
    {SQLITE_IOERR_CORRUPTFS, StoreFault::failed},  // EIO: nobody has seen what is in the file
    {SQLITE_IOERR_DELETE, StoreFault::unopenable},  // the journal of a dead writer, in a read-only folder
    {SQLITE_CANTOPEN_SYMLINK, StoreFault::untrusted},  // made after the place was looked at
    {SQLITE_CANTOPEN, StoreFault::unopenable},
    {SQLITE_PERM, StoreFault::unopenable},
    {SQLITE_AUTH, StoreFault::unopenable},
    {SQLITE_NOTADB, StoreFault::not_a_database},
    {SQLITE_READONLY, StoreFault::read_only},
    {SQLITE_BUSY, StoreFault::busy},
    {SQLITE_LOCKED, StoreFault::busy},
    {SQLITE_CORRUPT, StoreFault::corrupt},
    {SQLITE_FULL, StoreFault::full},
    {SQLITE_INTERRUPT, StoreFault::failed},
}};

/// Returns what the operating system reported last; 0 if that is not known. SQLite keeps errors of opening with the
/// connection, and errors of reading and writing with the file.
int last_errno(sqlite3* connection) {
  int of_file = 0;
  if (const int of_connection = sqlite3_system_errno(connection); of_connection != 0) return of_connection;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_LAST_ERRNO, &of_file);
  return of_file;
}

bool is_write_error(int extended_code) {
  return extended_code == SQLITE_IOERR_WRITE || extended_code == SQLITE_IOERR_TRUNCATE;
}

bool is_file_size_limited() {
  ::rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

StoreFault fault_of(int extended_code, int system_errno) {
  // SQLite calls only ENOSPC "full"; a quota and a limit on the file's size are the same to the user.
  if (is_write_error(extended_code) && (system_errno == EDQUOT || system_errno == EFBIG)) return StoreFault::full;
  for (const CodeFault& entry : kCodeFaults) {
    if (entry.code == extended_code || entry.code == (extended_code & 0xff)) return entry.fault;
  }
  return StoreFault::failed;
}

std::string repair_command(const std::filesystem::path& path) {
  return "hone cache repair --cache " + shell_quoted(path.native());
}

/// As hone cache export --text writes it.
bool is_text_of_winners(const std::filesystem::path& path) {
  std::string begin(kShippedBegin.size(), '\0');
  std::ifstream(path, std::ios::binary).read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == kShippedBegin;
}

}  // namespace

StoreError store_error(const std::filesystem::path& path, StoreFault fault, std::string_view detail,
                       std::string_view advice) {
  const FaultText& text = kFaultTexts[static_cast<std::size_t>(fault)];
  return StoreError(fault, path, std::string(detail),
                    fmt::format("the cache {} {}: {}; {}", path.native(), text.found, detail,
                                advice.empty() ? fmt::format(fmt::runtime(text.advice), repair_command(path))
                                               : std::string(advice)));
}

void refuse_all_damaged(const std::filesystem::path& path, std::int64_t intact, std::int64_t damaged) {
  if (intact > 0 || damaged == 0) return;
  throw store_error(path, StoreFault::corrupt,
                    damaged == 1 ? "its one winner is damaged" : fmt::format("all {} winners are damaged", damaged));
}

StoreError sqlite_error(const std::filesystem::path& path, sqlite3* connection) {
  if (connection == nullptr) return store_error(path, StoreFault::failed, "out of memory");
  const int code = sqlite3_extended_errcode(connection);
  int system_errno = last_errno(connection);
  // If the journal could not grow, undoing the transaction has taken the number away.
  if (system_errno == 0 && is_write_error(code) && is_file_size_limited()) system_errno = EFBIG;
  std::string detail = sqlite3_errmsg(connection);
  const int primary = code & 0xff;
  if (system_errno != 0 && (primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR)) {
    detail += fmt::format(" ({})", std::generic_category().message(system_errno));
  }
  if (code == SQLITE_READONLY_ROLLBACK) detail = "an interrupted write must be undone first, and the file is read-only";
  if (primary == SQLITE_NOTADB)
    detail += is_text_of_winners(path) ? " but a text of winners to ship: HONE_CACHE_PATH may name it, as NAME.winners"
                                         " (docs/cache.md)"
                                       : " (if it was Hone's, this may save its rows: " + repair_command(path) + ")";
  const bool is_refusal = primary == SQLITE_CANTOPEN || code == SQLITE_IOERR_DELETE;
  if (const std::string refusal = is_refusal ? GuardedVfs::refusal(connection) : ""; !refusal.empty())
    return store_error(path, StoreFault::unopenable, refusal);
  if (primary == SQLITE_INTERRUPT) detail = "an operation took far too long and was given up";
  return store_error(path, fault_of(code, system_errno), detail);
}

}  // namespace hone::cache
