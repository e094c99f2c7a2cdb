// read_file and write_file: one short transaction on a cache file, which is closed again afterwards.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <utility>

#include "cache/connection.h"
#include "cache/place.h"
#include "cache/schema.h"

namespace hone::cache {

/// An absolute path cannot be taken for one of SQLite's special names ("", ":memory:"). Throws StoreError(unopenable).
std::filesystem::path absolute_path(const std::filesystem::path& path);

/// How long a writer waits for others by default: what it has to write took long to find out.
inline constexpr std::chrono::milliseconds kWritePatience(5000);

/// Calls `work` with an open connection to the cache at `path` and the version of its schema, in one reading
/// transaction. If there is no file, or nothing in it, the result is a default-constructed one. Throws StoreError.
template <class Work>
auto read_file(const std::filesystem::path& path, Trust trust, Work work) {
  using Result = decltype(work(std::declval<Connection&>(), std::int64_t{}));
  const std::filesystem::path file = absolute_path(path);
  if (!find_place(file).exists) return Result{};
  Connection connection(file, Access::read, trust);
  const Transaction transaction(connection, Access::read);
  const std::int64_t version = check_schema(connection, file, Access::read);
  if (version == kEmptyFile) return Result{};
  return work(connection, version);
}

/// Calls `work` in one writing transaction on the cache at `path`, made or migrated first where that is needed. While
/// other processes keep it locked, tries again until `patience` is over: `work` may be called more than once, each time
/// on a file that knows nothing of the earlier calls. Throws StoreError; then nothing was written.
void write_file(const std::filesystem::path& path, std::chrono::milliseconds patience,
                const std::function<void(Connection&)>& work);

}  // namespace hone::cache
