#include "cache/statement.h"

#include <sqlite3.h>

#include <algorithm>
#include <limits>
#include <new>

#include "cache/errors.h"

namespace hone::cache {
namespace {

/// SQLite binds a null pointer as NULL; an empty text is not that.
template <class T>
const void* non_null(const T* data) {
  return data != nullptr ? static_cast<const void*>(data) : "";
}

}  // namespace

StatementPool::~StatementPool() {
  for (sqlite3_stmt* statement : idle_) sqlite3_finalize(statement);
}

sqlite3_stmt* StatementPool::take(std::string_view sql) noexcept {
  const auto found =
      std::find_if(idle_.begin(), idle_.end(), [&](sqlite3_stmt* idle) { return sqlite3_sql(idle) == sql; });
  if (found == idle_.end()) return nullptr;
  sqlite3_stmt* const statement = *found;
  idle_.erase(found);
  return statement;
}

void StatementPool::give_back(sqlite3_stmt* statement) noexcept {
  // More than any transaction of ours has; the one unused for longest goes.
  constexpr std::size_t kMaxIdle = 32;
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  try {
    idle_.push_back(statement);
  } catch (const std::bad_alloc&) {
    sqlite3_finalize(statement);
  }
  if (idle_.size() <= kMaxIdle) return;
  sqlite3_finalize(idle_.front());
  idle_.erase(idle_.begin());
}

void Statement::Finalizer::operator()(sqlite3_stmt* statement) const noexcept {
  if (pool != nullptr) pool->give_back(statement);
  else sqlite3_finalize(statement);
}

Statement::Statement(sqlite3* connection, std::string_view sql, StatementPool* pool) : handle_(nullptr, {pool}) {
  if (pool != nullptr) handle_.reset(pool->take(sql));
  if (handle_) return;
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(connection, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  handle_.reset(statement);
  if (code != SQLITE_OK) throw sqlite_error(sqlite3_db_filename(connection, "main"), connection);
}

void Statement::check(int code) const {
  if (code == SQLITE_OK) return;
  sqlite3* const connection = sqlite3_db_handle(handle_.get());
  throw sqlite_error(sqlite3_db_filename(connection, "main"), connection);
}

Statement& Statement::bind(std::string_view value) {
  check(sqlite3_bind_text64(handle_.get(), ++bound_, static_cast<const char*>(non_null(value.data())), value.size(),
                            SQLITE_STATIC, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind(std::span<const std::byte> value) {
  check(sqlite3_bind_blob64(handle_.get(), ++bound_, non_null(value.data()), value.size(), SQLITE_STATIC));
  return *this;
}

Statement& Statement::bind(std::int64_t value) {
  check(sqlite3_bind_int64(handle_.get(), ++bound_, value));
  return *this;
}

Statement& Statement::bind(double value) {
  check(sqlite3_bind_double(handle_.get(), ++bound_, value));
  return *this;
}

bool Statement::step() {
  read_ = 0;
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) check(code);
  return false;
}

void Statement::run() {
  step();
  check(sqlite3_reset(handle_.get()));
  bound_ = 0;
}

void Statement::read(std::string& value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), read_));
  const int size = sqlite3_column_bytes(handle_.get(), read_++);
  value.assign(text != nullptr ? text : "", static_cast<std::size_t>(size));
}

void Statement::read(std::vector<std::byte>& value) {
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(handle_.get(), read_));
  const int size = sqlite3_column_bytes(handle_.get(), read_++);
  value.assign(data, data + size);
}

void Statement::read(std::int64_t& value) { value = sqlite3_column_int64(handle_.get(), read_++); }

void Statement::read(int& value) {
  // A damaged number may not fit; clamped, it can no longer match the digest of its row.
  using Limits = std::numeric_limits<int>;
  const std::int64_t wide = sqlite3_column_int64(handle_.get(), read_++);
  value = static_cast<int>(std::clamp<std::int64_t>(wide, Limits::min(), Limits::max()));
}

void Statement::read(bool& value) { value = sqlite3_column_int64(handle_.get(), read_++) != 0; }

void Statement::read(double& value) {
  const bool is_null = sqlite3_column_type(handle_.get(), read_) == SQLITE_NULL;
  value = is_null ? std::numeric_limits<double>::quiet_NaN() : sqlite3_column_double(handle_.get(), read_);
  ++read_;
}

}  // namespace hone::cache
