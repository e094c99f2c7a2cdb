#include "cache/connection.h"

#include <sqlite3.h>

#include "cache/errors.h"
#include "cache/place.h"

namespace hone::cache {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds busy_timeout(Access access) { return milliseconds(access == Access::read ? 50 : 2000); }

/// For the whole life of a connection. Far above what any honest file needs (2000 winners: milliseconds); it ends
/// what a file made to keep us busy would start.
constexpr milliseconds kDeadline(10000);
constexpr int kInstructionsPerDeadlineCheck = 10000;

int is_past(void* deadline) {
  return std::chrono::steady_clock::now() > *static_cast<const std::chrono::steady_clock::time_point*>(deadline);
}

}  // namespace

void Connection::Closer::operator()(sqlite3* connection) const noexcept { sqlite3_close_v2(connection); }

Connection::Connection(const std::filesystem::path& path, Access access)
    : deadline_(std::make_unique<Deadline>(std::chrono::steady_clock::now() + kDeadline)) {
  const bool is_new = !file_exists(path) && access == Access::write;
  if (is_new) prepare_folder(path);
  const int flags = SQLITE_OPEN_READWRITE | (access == Access::write ? SQLITE_OPEN_CREATE : 0);
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &connection, flags, nullptr);
  handle_.reset(connection);
  if (code != SQLITE_OK) throw sqlite_error(path, connection);
  if (is_new) make_private(path);
  configure(access);
}

void Connection::configure(Access access) {
  sqlite3* const connection = handle_.get();
  sqlite3_extended_result_codes(connection, 1);
  sqlite3_busy_timeout(connection, static_cast<int>(busy_timeout(access).count()));
  sqlite3_progress_handler(connection, kInstructionsPerDeadlineCheck, is_past, deadline_.get());
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_FKEY, 1, nullptr);
  execute("PRAGMA cell_size_check = ON");
  execute("PRAGMA mmap_size = 0");
  if (access == Access::read) execute("PRAGMA query_only = ON");
}

Transaction::Transaction(Connection& connection, Access access) : connection_(connection) {
  connection_.execute(access == Access::read ? "BEGIN" : "BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    connection_.execute("ROLLBACK");
  } catch (const std::exception&) {
    // After some errors SQLite has rolled back already; otherwise closing the connection does it.
  }
}

void Transaction::commit() {
  connection_.execute("COMMIT");
  open_ = false;
}

}  // namespace hone::cache
