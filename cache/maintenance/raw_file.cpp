#include "cache/maintenance/raw_file.h"

#include <sqlite3.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "cache/errors.h"

namespace hone::cache {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLockTimeout(5000);
constexpr milliseconds kPauseBetweenTries(2);

void free_filename(char* name) { sqlite3_free_filename(name); }

}  // namespace

void RawFile::Closer::operator()(sqlite3_file* file) const noexcept {
  if (file->pMethods != nullptr) file->pMethods->xClose(file);
  std::free(file);
}

RawFile::RawFile(const std::filesystem::path& path)
    : path_(path), name_(const_cast<char*>(sqlite3_create_filename(path.c_str(), "", "", 0, nullptr)), free_filename) {
  sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
  if (!name_ || vfs == nullptr) throw store_error(path, StoreFault::failed, "out of memory");
  file_.reset(static_cast<sqlite3_file*>(std::calloc(1, static_cast<std::size_t>(vfs->szOsFile))));
  if (!file_) throw store_error(path, StoreFault::failed, "out of memory");
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MAIN_DB;
  const int code = vfs->xOpen(vfs, name_.get(), file_.get(), flags, &flags);
  if (code != SQLITE_OK) throw store_error(path, StoreFault::unopenable, sqlite3_errstr(code));
}

RawFile::~RawFile() {
  if (lock_ != SQLITE_LOCK_NONE) file_->pMethods->xUnlock(file_.get(), SQLITE_LOCK_NONE);
}

void RawFile::lock_exclusively() {
  const auto deadline = std::chrono::steady_clock::now() + kLockTimeout;
  for (const int level : {SQLITE_LOCK_SHARED, SQLITE_LOCK_RESERVED, SQLITE_LOCK_EXCLUSIVE}) {
    int code = file_->pMethods->xLock(file_.get(), level);
    while (code == SQLITE_BUSY && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(kPauseBetweenTries);
      code = file_->pMethods->xLock(file_.get(), level);
    }
    if (code == SQLITE_BUSY) throw store_error(path_, StoreFault::busy, "it cannot be repaired while it is in use");
    if (code != SQLITE_OK) throw store_error(path_, StoreFault::failed, sqlite3_errstr(code));
    lock_ = level;
  }
}

std::int64_t RawFile::size_bytes() const {
  sqlite3_int64 size = 0;
  const int code = file_->pMethods->xFileSize(file_.get(), &size);
  if (code != SQLITE_OK) throw store_error(path_, StoreFault::failed, sqlite3_errstr(code));
  return size;
}

bool RawFile::read(std::int64_t offset, std::span<std::byte> bytes) const {
  const auto try_once = [&] {
    return file_->pMethods->xRead(file_.get(), bytes.data(), static_cast<int>(bytes.size()), offset);
  };
  int code = try_once();
  // A device that fails once need not fail again, and what is not read now is lost.
  for (int again = 0; code == SQLITE_IOERR_READ && again < 2; ++again) code = try_once();
  return code == SQLITE_OK;
}

}  // namespace hone::cache
