// What the cache tests share: a folder of their own, invented records, and SQL behind the store's back.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cache/store.h"

namespace hone::cache {

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

/// A tuned winner for sums of 1 … 1000 elements, every field with a value of its own, and two trials.
Publication sample_publication();

/// The same problem class, chosen by the model.
Publication untuned_publication();

/// What finds it, at 500 elements.
Query matching_query(const Publication& publication);

/// Every row of a query as text, columns separated by '|'. Plain SQLite, without the store's precautions.
std::vector<std::string> sql(const std::filesystem::path& file, const std::string& statements);

/// Makes the file that tests/cache/fixtures keeps of an earlier schema version.
void make_fixture(const std::filesystem::path& file, int version);

std::vector<std::byte> read_bytes(const std::filesystem::path& file);
void write_bytes(const std::filesystem::path& file, const std::vector<std::byte>& bytes);
void write_text(const std::filesystem::path& file, const std::string& text);

/// The fault that `action` throws; fails the test when it throws none, or when its message lacks `path` or `words`.
StoreFault fault_of(const std::function<void()>& action, const std::filesystem::path& path, const std::string& words);

}  // namespace hone::cache
