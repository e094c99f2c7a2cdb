#include "cache/transact.h"

#include <system_error>

#include "cache/errors.h"
#include "cache/migration.h"

namespace hone::cache {
namespace {

void write_once(const std::filesystem::path& file, const std::function<void(Connection&)>& work) {
  Connection connection(file, Access::write);
  Transaction transaction(connection, Access::write);
  // While we waited for the lock, a repaired file may have taken its place: try again with that.
  if (connection.is_displaced()) throw store_error(file, StoreFault::busy, "another file was put in its place");
  bring_up_to_date(connection, file);
  work(connection);
  transaction.commit();
}

}  // namespace

std::filesystem::path absolute_path(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (path.empty()) throw store_error(path, StoreFault::unopenable, "its path is empty");
  if (error) throw store_error(path, StoreFault::unopenable, error.message());
  return absolute;
}

void write_file(const std::filesystem::path& path, std::chrono::milliseconds patience,
                const std::function<void(Connection&)>& work) {
  const std::filesystem::path file = absolute_path(path);
  while_locked(patience, [&] { write_once(file, work); });
}

}  // namespace hone::cache
