// read_file and write_file: one short transaction on a cache file, which is closed again afterwards.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>
#include <utility>

#include "cache/connection.h"
#include "cache/place.h"
#include "cache/schema.h"
#include "cache/store.h"

namespace hone::cache {

/// An absolute path cannot be taken for one of SQLite's special names ("", ":memory:"). Throws StoreError(unopenable).
std::filesystem::path absolute_path(const std::filesystem::path& path);

/// How long a writer waits for others by default: what it has to write took long to find out.
inline constexpr std::chrono::milliseconds kWritePatience(5000);

/// The pause between two tries, the same for everyone: with longer and longer ones, the one that has waited longest
/// would be the least likely to find the gap.
inline constexpr std::chrono::milliseconds kLockPause(8);

/// Calls `work`, and again while other processes keep the file locked, until `patience` is over.
template <class Work>
auto while_locked(std::chrono::milliseconds patience, Work work) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    try {
      return work();
    } catch (const StoreError& error) {
      if (error.fault() != StoreFault::busy || std::chrono::steady_clock::now() >= end) throw;
    }
    std::this_thread::sleep_for(kLockPause);
  }
}

/// Calls `work` with an open connection to the cache at `path` and the version of its schema, in one reading
/// transaction. If there is no file, or nothing in it, the result is a default-constructed one. While other processes
/// keep it locked, tries again until `patience` is over, as write_file() does. Throws StoreError.
template <class Work>
auto read_file(const std::filesystem::path& path, Trust trust, Work work, std::chrono::milliseconds patience = {}) {
  using Result = decltype(work(std::declval<Connection&>(), std::int64_t{}));
  const std::filesystem::path file = absolute_path(path);
  return while_locked(patience, [&] {
    if (!file_exists(file)) return Result{};
    Connection connection(file, Access::read, trust);
    const Transaction transaction(connection, Access::read);
    const std::int64_t version = check_schema(connection, file, Access::read);
    if (version == kEmptyFile) return Result{};
    return work(connection, version);
  });
}

/// Calls `work` in one writing transaction on the cache at `path`, made or migrated first where that is needed. While
/// other processes keep it locked, tries again until `patience` is over: `work` may be called more than once, each time
/// on a file that knows nothing of the earlier calls. Throws StoreError; then nothing was written.
void write_file(const std::filesystem::path& path, std::chrono::milliseconds patience,
                const std::function<void(Connection&)>& work);

}  // namespace hone::cache
