#include "cache/connection.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <string>
#include <thread>

#include "cache/errors.h"
#include "cache/guarded_vfs.h"
#include "cache/mount_locks.h"
#include "cache/place.h"
#include "cache/step.h"

namespace hone::cache {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A cache that cannot be read now is a slower start, no failed call: with opening, a lookup stays below 50 ms.
constexpr milliseconds kBusyTimeout(40);

/// Who writes already has kept new readers out, and waits for those alone that are reading now: giving up would help
/// nobody, and on a busy machine, where readers are interrupted in the middle, nobody would ever come to an end.
constexpr milliseconds kBusyTimeoutOfCommits(2000);

/// SQLite's own handler waits longer and longer between its tries: of several writers at once, the one that has waited
/// longest would be the least likely to find the gap. With equal pauses everyone has the same chance.
constexpr milliseconds kPauseBetweenTries(8);

/// For the whole life of a connection. Far above what any honest file needs (2000 winners: milliseconds); it ends
/// what a file made to keep us busy would start.
constexpr milliseconds kDeadline(10000);
constexpr int kInstructionsPerDeadlineCheck = 10000;

/// One thread uses a connection, so none has to be kept out while a value is read.
constexpr int kUsualFlags = SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX;

/// Every character that could mean something in a URI is escaped.
std::string immutable_uri(const std::filesystem::path& path) {
  std::string uri = "file:";
  for (const char c : path.native()) {
    const bool is_plain = c == '/' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return uri + "?immutable=1";
}

}  // namespace

struct Connection::Limits {
  Clock::time_point deadline;
  Clock::time_point busy_since = {};
  sqlite3* connection = nullptr;

  static int is_past_deadline(void* limits) { return Clock::now() > static_cast<const Limits*>(limits)->deadline; }

  /// Returns 1 to try once more for a lock, after a pause; else 0.
  static int wait_for_lock(void* limits, int earlier_tries) {
    Limits& self = *static_cast<Limits*>(limits);
    if (earlier_tries == 0) self.busy_since = Clock::now();
    const bool is_writing = sqlite3_txn_state(self.connection, "main") == SQLITE_TXN_WRITE;
    if (Clock::now() - self.busy_since >= (is_writing ? kBusyTimeoutOfCommits : kBusyTimeout)) return 0;
    std::this_thread::sleep_for(kPauseBetweenTries);
    return 1;
  }
};

void Connection::Closer::operator()(sqlite3* connection) const noexcept { sqlite3_close_v2(connection); }

Connection::Connection(const std::filesystem::path& path, Access access, Trust trust)
    : path_(path),
      limits_(std::make_unique<Limits>(Limits{.deadline = Clock::now() + kDeadline})),
      vfs_(std::make_unique<GuardedVfs>()) {
  const Step step("open");
  Place place = find_place(path);
  if (access == Access::write && trust != Trust::alone) require_locks(place.path);
  if (!place.exists && access == Access::write && place.distrust.empty()) {
    prepare_folder(place.path);
    place = find_place(place.path);
  }
  if (trust != Trust::any) require_trust(place);
  if (access == Access::write) require_writer(place);
  const bool is_shared = access == Access::read && place.distrust.empty() && !lock_distrust(place.path).empty();
  if (place.distrust.empty() && !is_shared) open(place, access);
  else open_immutable(place);
  require_same(place);
  configure(access);
}

void Connection::open(const Place& place, Access access) {
  const int flags = kUsualFlags | SQLITE_OPEN_READWRITE | (access == Access::write ? SQLITE_OPEN_CREATE : 0);
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(place.path.c_str(), &connection, flags, vfs_->name());
  handle_.reset(connection);
  if (code != SQLITE_OK) throw sqlite_error(path_, connection);
  if (!place.exists) make_private(place.path);
  if (is_displaced()) throw store_error(path_, StoreFault::untrusted, "its name was given to another file");
}

/// Somebody else may have put anything beside it, or may be writing it: a journal would be played back and deleted.
void Connection::open_immutable(const Place& place) {
  require_finished(place.path);
  const int flags = kUsualFlags | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(immutable_uri(place.path).c_str(), &connection, flags, vfs_->name());
  handle_.reset(connection);
  if (code != SQLITE_OK) throw sqlite_error(path_, connection);
}

bool Connection::is_displaced() {
  int moved = 0;
  sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return moved != 0;
}

Connection::~Connection() = default;

void Connection::configure(Access access) {
  sqlite3* const connection = handle_.get();
  sqlite3_extended_result_codes(connection, 1);
  limits_->connection = connection;
  sqlite3_busy_handler(connection, Limits::wait_for_lock, limits_.get());
  sqlite3_progress_handler(connection, kInstructionsPerDeadlineCheck, Limits::is_past_deadline, limits_.get());
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_FKEY, 1, nullptr);
  execute("PRAGMA cell_size_check = ON");
  execute("PRAGMA mmap_size = 0");
  execute("PRAGMA temp_store = MEMORY");
  if (access == Access::read) execute("PRAGMA query_only = ON");
  // FULL leaves the deletion of the journal unsynced: after a power loss it may be back, and undo what was committed.
  if (access == Access::write) execute("PRAGMA synchronous = EXTRA");
}

std::int64_t Connection::read_number(std::string_view sql) {
  Statement statement = prepare(sql);
  std::int64_t number = 0;
  if (statement.step()) statement.read(number);
  return number;
}

void Connection::lift_deadline() noexcept { limits_->deadline = Clock::time_point::max(); }

std::vector<std::byte> Connection::content() {
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> copy(
      sqlite3_serialize(handle_.get(), "main", &size, 0), sqlite3_free);
  if (!copy) throw sqlite_error(path_, handle_.get());
  const auto* const data = reinterpret_cast<const std::byte*>(copy.get());
  return {data, data + size};
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
