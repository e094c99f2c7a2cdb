#include "tests/cache/faults/fault_vfs.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <utility>

namespace hone::cache {
namespace {

/// The one that rename() asks.
FaultVfs* active = nullptr;

/// SQLite's handle of an open file. The file of the real VFS follows it in memory.
struct FaultFile {
  sqlite3_file base;
  const FaultVfs* owner;
  std::string* path;
};

FaultFile& fault_file(sqlite3_file* file) { return *reinterpret_cast<FaultFile*>(file); }
sqlite3_file* real_file(sqlite3_file* file) { return reinterpret_cast<sqlite3_file*>(&fault_file(file) + 1); }

int ask(sqlite3_file* file, Call call, std::int64_t offset = 0, std::span<const std::byte> bytes = {}) {
  const FaultFile& self = fault_file(file);
  Operation operation;
  operation.call = call;
  operation.path = *self.path;
  operation.offset = offset;
  operation.bytes = bytes;
  return self.owner->ask(operation);
}

/// Asks, then makes the call of the real file.
template <class... Args>
int pass(sqlite3_file* file, int verdict, int (*sqlite3_io_methods::*method)(sqlite3_file*, Args...), Args... args) {
  sqlite3_file* const real = real_file(file);
  return verdict != SQLITE_OK ? verdict : (real->pMethods->*method)(real, args...);
}

int close_file(sqlite3_file* file) {
  const int verdict = ask(file, Call::close);
  sqlite3_file* const real = real_file(file);
  const int code = real->pMethods->xClose(real);  // a failed close() closes
  delete fault_file(file).path;
  return verdict != SQLITE_OK ? verdict : code;
}

int read_file(sqlite3_file* file, void* data, int size, sqlite3_int64 offset) {
  return pass(file, ask(file, Call::read, offset), &sqlite3_io_methods::xRead, data, size, offset);
}

int write_file(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  const std::span bytes(static_cast<const std::byte*>(data), static_cast<std::size_t>(size));
  return pass(file, ask(file, Call::write, offset, bytes), &sqlite3_io_methods::xWrite, data, size, offset);
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  return pass(file, ask(file, Call::truncate, size), &sqlite3_io_methods::xTruncate, size);
}

int sync_file(sqlite3_file* file, int flags) {
  return pass(file, ask(file, Call::sync), &sqlite3_io_methods::xSync, flags);
}

int size_file(sqlite3_file* file, sqlite3_int64* size) {
  return pass(file, ask(file, Call::file_size), &sqlite3_io_methods::xFileSize, size);
}

int lock_file(sqlite3_file* file, int level) {
  return pass(file, ask(file, Call::lock), &sqlite3_io_methods::xLock, level);
}

int unlock_file(sqlite3_file* file, int level) {
  return pass(file, ask(file, Call::unlock), &sqlite3_io_methods::xUnlock, level);
}

int check_lock(sqlite3_file* file, int* result) {
  return pass(file, ask(file, Call::check_lock), &sqlite3_io_methods::xCheckReservedLock, result);
}

int control_file(sqlite3_file* file, int operation, void* argument) {
  return pass(file, SQLITE_OK, &sqlite3_io_methods::xFileControl, operation, argument);
}

int sector_size(sqlite3_file* file) { return pass(file, SQLITE_OK, &sqlite3_io_methods::xSectorSize); }

int device_characteristics(sqlite3_file* file) {
  return pass(file, SQLITE_OK, &sqlite3_io_methods::xDeviceCharacteristics);
}

/// Version 1: no shared memory, so no WAL, and no memory mapping: the cache uses neither.
const sqlite3_io_methods* io_methods() {
  static const sqlite3_io_methods methods = [] {
    sqlite3_io_methods made{};
    made.iVersion = 1;
    made.xClose = close_file;
    made.xRead = read_file;
    made.xWrite = write_file;
    made.xTruncate = truncate_file;
    made.xSync = sync_file;
    made.xFileSize = size_file;
    made.xLock = lock_file;
    made.xUnlock = unlock_file;
    made.xCheckReservedLock = check_lock;
    made.xFileControl = control_file;
    made.xSectorSize = sector_size;
    made.xDeviceCharacteristics = device_characteristics;
    return made;
  }();
  return &methods;
}

const FaultVfs& owner_of(sqlite3_vfs* vfs) { return *static_cast<const FaultVfs*>(vfs->pAppData); }

int open_file(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  const FaultVfs& owner = owner_of(vfs);
  FaultFile& self = *new (file) FaultFile{{nullptr}, &owner, nullptr};
  Operation operation;
  operation.call = Call::open;
  operation.path = name != nullptr ? name : "";
  operation.creates = (flags & SQLITE_OPEN_CREATE) != 0;
  operation.is_journal = (flags & SQLITE_OPEN_MAIN_JOURNAL) != 0;
  if (const int verdict = owner.ask(operation); verdict != SQLITE_OK) return verdict;
  sqlite3_file* const real = real_file(file);
  real->pMethods = nullptr;
  const int code = owner.real()->xOpen(owner.real(), name, real, flags, out_flags);
  if (real->pMethods == nullptr) return code;
  self.path = new std::string(operation.path);
  self.base.pMethods = io_methods();
  return code;
}

int delete_file(sqlite3_vfs* vfs, const char* name, int sync_folder) {
  const FaultVfs& owner = owner_of(vfs);
  Operation operation;
  operation.call = Call::remove;
  operation.path = name;
  operation.syncs_folder = sync_folder != 0;
  const int verdict = owner.ask(operation);
  return verdict != SQLITE_OK ? verdict : owner.real()->xDelete(owner.real(), name, sync_folder);
}

int access_file(sqlite3_vfs* vfs, const char* name, int flags, int* result) {
  const FaultVfs& owner = owner_of(vfs);
  Operation operation;
  operation.call = Call::access;
  operation.path = name;
  const int verdict = owner.ask(operation);
  return verdict != SQLITE_OK ? verdict : owner.real()->xAccess(owner.real(), name, flags, result);
}

/// Forwards a method of the VFS as it is.
template <auto Method, class... Args>
auto forward(sqlite3_vfs* vfs, Args... args) {
  sqlite3_vfs* const real = owner_of(vfs).real();
  return (real->*Method)(real, args...);
}

}  // namespace

bool Operation::is_change() const {
  switch (call) {
    case Call::write:
    case Call::truncate:
    case Call::sync:
    case Call::remove:
    case Call::rename:
      return true;
    case Call::open:
      return creates;
    default:
      return false;
  }
}

FaultVfs::FaultVfs(Hook hook) : hook_(std::move(hook)), real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
  if (active != nullptr) throw std::logic_error("a FaultVfs is active already");
  vfs_.iVersion = 2;  // the third has only what replaces system calls
  vfs_.szOsFile = static_cast<int>(sizeof(FaultFile)) + real_->szOsFile;
  vfs_.pNext = nullptr;
  vfs_.zName = "fault";
  vfs_.pAppData = this;
  vfs_.xOpen = open_file;
  vfs_.xDelete = delete_file;
  vfs_.xAccess = access_file;
  vfs_.xFullPathname = forward<&sqlite3_vfs::xFullPathname>;
  vfs_.xDlOpen = forward<&sqlite3_vfs::xDlOpen>;
  vfs_.xDlError = forward<&sqlite3_vfs::xDlError>;
  vfs_.xDlSym = nullptr;  // nobody loads extensions
  vfs_.xDlClose = forward<&sqlite3_vfs::xDlClose>;
  vfs_.xRandomness = forward<&sqlite3_vfs::xRandomness>;
  vfs_.xSleep = forward<&sqlite3_vfs::xSleep>;
  vfs_.xCurrentTime = forward<&sqlite3_vfs::xCurrentTime>;
  vfs_.xGetLastError = forward<&sqlite3_vfs::xGetLastError>;
  vfs_.xCurrentTimeInt64 = forward<&sqlite3_vfs::xCurrentTimeInt64>;
  if (sqlite3_vfs_register(&vfs_, 1) != SQLITE_OK) throw std::runtime_error("the fault VFS cannot be registered");
  active = this;
}

FaultVfs::~FaultVfs() {
  active = nullptr;
  sqlite3_vfs_unregister(&vfs_);
  sqlite3_vfs_register(real_, 1);
}

int io_error(Call call) {
  switch (call) {
    case Call::open:
      return SQLITE_CANTOPEN;
    case Call::read:
      return SQLITE_IOERR_READ;
    case Call::write:
      return SQLITE_IOERR_WRITE;
    case Call::truncate:
      return SQLITE_IOERR_TRUNCATE;
    case Call::sync:
      return SQLITE_IOERR_FSYNC;
    case Call::file_size:
      return SQLITE_IOERR_FSTAT;
    case Call::lock:
      return SQLITE_IOERR_LOCK;
    case Call::unlock:
      return SQLITE_IOERR_UNLOCK;
    case Call::check_lock:
      return SQLITE_IOERR_CHECKRESERVEDLOCK;
    case Call::access:
      return SQLITE_IOERR_ACCESS;
    case Call::remove:
      return SQLITE_IOERR_DELETE;
    case Call::rename:
      return SQLITE_IOERR;
    case Call::close:
      return SQLITE_OK;
  }
  return SQLITE_IOERR;
}

}  // namespace hone::cache

/// These stand in for the C library's: files of the cache that are not SQLite's to write are published by renaming
/// them.
extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  using namespace hone::cache;
  if (active != nullptr) {
    Operation operation;
    operation.call = Call::rename;
    operation.path = from;
    operation.target = to;
    if (active->ask(operation) != SQLITE_OK) {
      errno = EIO;
      return -1;
    }
  }
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

extern "C" int rename(const char* from, const char* to) noexcept { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
