#include "cache/maintenance/open_file.h"

#include <functional>
#include <thread>

#include "cache/errors.h"
#include "cache/migration.h"
#include "cache/transact.h"

namespace hone::cache {
namespace {

/// Calls `open` until the file is not locked any more, as long as a publication would wait.
void wait_for(const std::function<void()>& open) {
  using SteadyClock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPauseBetweenOpens(2);
  const SteadyClock::time_point end = SteadyClock::now() + kWritePatience;
  for (;;) {
    try {
      return open();
    } catch (const StoreError& error) {
      if (error.fault() != StoreFault::busy || SteadyClock::now() >= end) throw;
    }
    std::this_thread::sleep_for(kPauseBetweenOpens);
  }
}

}  // namespace

std::filesystem::path resolved_path(const std::filesystem::path& path) { return find_place(absolute_path(path)).path; }

ReadingFile::ReadingFile(const std::filesystem::path& path) {
  const std::filesystem::path file = absolute_path(path);
  if (!file_exists(file)) throw store_error(file, StoreFault::unopenable, "there is no such file");
  wait_for([&] { open(file); });
  connection_->lift_deadline();
}

void ReadingFile::open(const std::filesystem::path& file) {
  transaction_.reset();
  connection_.reset();
  connection_ = std::make_unique<Connection>(file, Access::read, Trust::any);
  transaction_.emplace(*connection_, Access::read);
  schema_version_ = check_schema(*connection_, file, Access::read);
}

WritingFile::WritingFile(const std::filesystem::path& path, Trust trust) {
  const std::filesystem::path file = absolute_path(path);
  wait_for([&] { open(file, trust); });
  connection_->lift_deadline();
}

void WritingFile::open(const std::filesystem::path& file, Trust trust) {
  transaction_.reset();
  connection_.reset();
  connection_ = std::make_unique<Connection>(file, Access::write, trust);
  transaction_.emplace(*connection_, Access::write);
  // While we waited for the lock, a repaired file may have taken its place.
  if (connection_->is_displaced()) throw store_error(file, StoreFault::busy, "another file was put in its place");
  bring_up_to_date(*connection_, file);
}

void WritingFile::commit() {
  transaction_->commit();
  transaction_.reset();
}

}  // namespace hone::cache
