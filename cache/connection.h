// Connection and Transaction: an SQLite file, opened as one that may have been tampered with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "cache/file_size_signal.h"
#include "cache/fork_gate.h"
#include "cache/place.h"
#include "cache/statement.h"

struct sqlite3;

namespace hone::cache {

class GuardedVfs;

enum class Access { read, write };

/// Trust says what is asked of a file before it is opened.
enum class Trust {
  owned,  ///< nobody but the user and root can have written it (see find_place): its code is going to be run
  alone,  ///< as owned, and no other process knows its name yet: nobody else needs to see locks
  any,    ///< any regular file: it is only looked at
};

/// One open cache file. Not movable, used by one thread, closed on destruction. Every method throws StoreError.
///
/// Reading works where nothing may be written. A reader of a trusted file still opens for writing if it may, since the
/// first one to come after an interrupted write has to undo that; it changes nothing else. A file that is not trusted
/// is opened read-only and immutable: nothing is undone, locked or made, and with an unfinished write beside it the
/// file is refused (StoreFault::unopenable). The same holds where other machines do not see locks (see
/// lock_distrust()), and writing there is StoreFault::unlocked. Files other than the cache's own are never touched (see
/// GuardedVfs).
///
/// Writing more than `ulimit -f` allows is an error as any other (see FileSizeSignal).
///
/// Another process's lock is waited for during 40 ms, at the end of a write 2 s, and then it is StoreFault::busy. Who
/// wants to wait longer closes the connection in between: while it is open, this process cannot fork.
class Connection {
 public:
  /// Opens the file at an absolute path. Writing creates it, with mode 0600, and the folders above it, with 0700.
  /// Reading must only be tried where there is a file.
  Connection(const std::filesystem::path& path, Access access, Trust trust = Trust::owned);
  ~Connection();

  Statement prepare(std::string_view sql) { return Statement(handle_.get(), sql, &statements_); }
  void execute(std::string_view sql) { Statement(handle_.get(), sql).run(); }

  /// The one number that `sql` asks for; 0 where it gives no row.
  std::int64_t read_number(std::string_view sql);

  /// The schema version that check_schema() found or create_schema() made; 0 before. Earlier versions have other names
  /// for some columns (see stored_name()).
  std::int64_t schema_version() const { return schema_version_; }
  void set_schema_version(std::int64_t version) { schema_version_ = version; }

  /// Lets statements take any time from here on: for work that a person asked for and can end.
  void lift_deadline() noexcept;

  /// True if another file, or none, has the name of this one by now. What is written here would be lost.
  bool is_displaced();

  /// Every byte of the file as the current transaction sees it. (Opening the file itself and closing it again would
  /// drop SQLite's locks on it.)
  std::vector<std::byte> content();

 private:
  struct Limits;
  struct Closer {
    void operator()(sqlite3* connection) const noexcept;
  };

  void open(const Place& place, Access access);
  void open_immutable(const Place& place);
  void configure(Access access);

  const ForkGate gate_;
  const FileSizeSignal size_signal_;
  std::filesystem::path path_;
  std::unique_ptr<Limits> limits_;  ///< at a fixed address, and alive until the handle is closed
  std::unique_ptr<GuardedVfs> vfs_;  ///< of the handle
  std::unique_ptr<sqlite3, Closer> handle_;
  StatementPool statements_;  ///< of the handle
  std::int64_t schema_version_ = 0;
};

/// All statements between construction and commit() happen, or none. Not movable; ends before its Connection.
class Transaction {
 public:
  /// A reader sees one state of the file from the first query on; a writer keeps other writers out from here on.
  Transaction(Connection& connection, Access access);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit();

 private:
  Connection& connection_;
  bool open_ = true;
};

}  // namespace hone::cache
