#include "cache/maintenance/open_file.h"

#include "cache/errors.h"
#include "cache/maintenance/put_in_place.h"
#include "cache/migration.h"
#include "cache/place.h"

namespace hone::cache {

ReadingFile::ReadingFile(const std::filesystem::path& path) {
  const std::filesystem::path file = real_path(path);
  if (!file_exists(file)) throw store_error(file, StoreFault::unopenable, "there is no such file");
  connection_ = std::make_unique<Connection>(file, Access::read);
  connection_->wait_as_writer();
  transaction_.emplace(*connection_, Access::read);
  schema_version_ = check_schema(*connection_, file, Access::read);
  connection_->lift_deadline();
}

WritingFile::WritingFile(const std::filesystem::path& path) {
  const std::filesystem::path file = real_path(path);
  do {
    // While we waited for it, another process may have put a repaired file in its place.
    transaction_.reset();
    connection_ = std::make_unique<Connection>(file, Access::write);
    transaction_.emplace(*connection_, Access::write);
  } while (connection_->is_displaced());
  bring_up_to_date(*connection_, file);
  connection_->lift_deadline();
}

void WritingFile::commit() {
  transaction_->commit();
  transaction_.reset();
}

}  // namespace hone::cache
