#include "cache/transact.h"

#include <system_error>
#include <thread>

#include "cache/errors.h"
#include "cache/migration.h"

namespace hone::cache {
namespace {

using Clock = std::chrono::steady_clock;

/// The same for everyone: with longer and longer pauses, the one that has waited longest would be the least likely to
/// find the gap.
constexpr std::chrono::milliseconds kPause(8);

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
  const Clock::time_point end = Clock::now() + patience;
  for (;;) {
    try {
      return write_once(file, work);
    } catch (const StoreError& error) {
      if (error.fault() != StoreFault::busy || Clock::now() >= end) throw;
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace hone::cache
