// Statement: one prepared SQL statement, bound and read from left to right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace hone::cache {

/// Statements of one connection that were prepared once and are not in use, by their text: preparing takes longer than
/// most of ours run. Used by one thread.
class StatementPool {
 public:
  StatementPool() = default;
  ~StatementPool();
  StatementPool(const StatementPool&) = delete;
  StatementPool& operator=(const StatementPool&) = delete;

  /// nullptr when none is idle.
  sqlite3_stmt* take(std::string_view sql) noexcept;
  void give_back(sqlite3_stmt* statement) noexcept;

 private:
  std::vector<sqlite3_stmt*> idle_;
};

/// Move-only. Used by one thread, and not after its Connection is gone. Every method throws StoreError.
///
/// Text and blobs that are bound must stay alive until the last step().
class Statement {
 public:
  /// Taken from `pool` and given back to it, where there is one.
  Statement(sqlite3* connection, std::string_view sql, StatementPool* pool = nullptr);

  /// Binds the next parameter.
  Statement& bind(std::string_view value);
  Statement& bind(std::span<const std::byte> value);
  Statement& bind(std::int64_t value);
  Statement& bind(int value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(bool value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(double value);  ///< a NaN becomes NULL

  /// Goes to the next row, and to its first column; false when there is none.
  bool step();

  /// Runs a statement that has no rows to read, and makes it ready for other parameters.
  void run();

  /// Reads the next column of the row.
  void read(std::string& value);
  void read(std::vector<std::byte>& value);
  void read(std::int64_t& value);
  void read(int& value);
  void read(bool& value);
  void read(double& value);  ///< NULL becomes a NaN

 private:
  struct Finalizer {
    StatementPool* pool = nullptr;
    void operator()(sqlite3_stmt* statement) const noexcept;
  };

  void check(int code) const;

  std::unique_ptr<sqlite3_stmt, Finalizer> handle_;
  int bound_ = 0;
  int read_ = 0;
};

}  // namespace hone::cache
