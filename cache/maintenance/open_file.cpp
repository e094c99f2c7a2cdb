#include "cache/maintenance/open_file.h"

#include "cache/errors.h"
#include "cache/migration.h"
#include "cache/transact.h"

namespace hone::cache {

std::filesystem::path resolved_path(const std::filesystem::path& path) { return find_place(absolute_path(path)).path; }

ReadingFile::ReadingFile(const std::filesystem::path& path) {
  const std::filesystem::path file = absolute_path(path);
  if (!file_exists(file)) throw store_error(file, StoreFault::unopenable, "there is no such file");
  while_locked(kWritePatience, [&] { open(file); });
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
  while_locked(kWritePatience, [&] { open(file, trust); });
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

void WritingFile::give_back_free_pages() {
  try {
    while_locked(kWritePatience, [this] { connection_->execute("VACUUM"); });
  } catch (const StoreError& error) {
    if (error.fault() != StoreFault::busy) throw;
  }
}

}  // namespace hone::cache
