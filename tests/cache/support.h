// The common part of the cache tests: a folder of their own, invented records, and SQL behind the store's back.
#pragma once

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cache/store.h"

struct sqlite3;

namespace hone::cache {

/// Files of this process may grow to so many bytes, and no further, as long as this lives: then writing fails with
/// EFBIG.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(::rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    ::rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  ::rlimit before_{};
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

/// A fresh folder, removed with everything in it on destruction.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Acts as an ordinary user while it lives: root is stopped by no permission. Does nothing for anyone else.
class WithoutRoot {
 public:
  WithoutRoot();
  ~WithoutRoot();
  WithoutRoot(const WithoutRoot&) = delete;
  WithoutRoot& operator=(const WithoutRoot&) = delete;

  /// Gives what root made to that user.
  static void give(const std::filesystem::path& path);

 private:
  bool was_root_;
};

/// Keeps a file locked as another process would: these locks belong to a connection, so one of this process will do.
class Locker {
 public:
  explicit Locker(const std::filesystem::path& file);
  ~Locker();
  Locker(const Locker&) = delete;
  Locker& operator=(const Locker&) = delete;

 private:
  sqlite3* connection_ = nullptr;
};

/// Runs `work` in a child process and returns its exit status: limits and crashes stay there. -1: killed by a signal.
int in_child(const std::function<int()>& work);

/// Leaves the file as a writer that died in the middle of its commit does: with a journal that has to be undone.
void interrupt_a_write(const std::filesystem::path& file);

/// Code that no packing makes smaller.
std::vector<std::byte> random_code(std::size_t bytes);

/// A tuned winner for sums of 1 … 1000 elements, every field with a value of its own, and two trials.
Publication sample_publication();

/// The same problem class, chosen by the model.
Publication untuned_publication();

/// The same class with a wider range: another key that serves the same queries.
Publication wider(Publication publication);

/// Returns the query that finds it, at 500 elements.
Query matching_query(const Publication& publication);

/// Every row of a query as text, columns separated by '|'. Plain SQLite with sqlar_uncompress(), as the sqlite3 shell
/// has it, and without the store's precautions.
std::vector<std::string> sql(const std::filesystem::path& file, const std::string& statements);

/// Has no digest hold: the median of a trial changes in the tunings of which `where` is true.
std::string sql_to_change_trials(const std::string& where = "true");

/// Makes the file that tests/cache/fixtures keeps of an earlier schema version.
void make_fixture(const std::filesystem::path& file, int version);

std::vector<std::byte> read_bytes(const std::filesystem::path& file);
void write_bytes(const std::filesystem::path& file, const std::vector<std::byte>& bytes);
void write_text(const std::filesystem::path& file, const std::string& text);

/// A mount namespace of this process's own, in which it may mount; false where the system does not allow that.
bool may_mount();

/// The fault that `action` throws; fails the test when it throws none, or when its message lacks `path` or `words`.
StoreFault fault_of(const std::function<void()>& action, const std::filesystem::path& path, const std::string& words);

}  // namespace hone::cache
