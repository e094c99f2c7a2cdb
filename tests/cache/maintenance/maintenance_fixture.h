// CacheMaintenance: two cache files, publications that differ, and what a file holds as text.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "cache/maintenance/entry.h"
#include "tests/cache/support.h"

namespace hone::cache {

/// Unlike that of any other number in operation, parameters and code; odd ones are tuned.
Publication numbered(int number, std::size_t code_bytes = 100);

Entry entry_of(const Publication& publication, std::int64_t created_at);

class CacheMaintenance : public testing::Test {
 protected:
  static constexpr std::int64_t kTime = 1'700'000'000;

  /// Writes a winner that was stored at a time of our choice.
  static void put(const std::filesystem::path& file, const Publication& publication, std::int64_t created_at = kTime);

  /// Returns what is intact in a file: a digest, "trials" and "code" of each winner, in the order of each_entry().
  static std::vector<std::string> content(const std::filesystem::path& file);

  /// How many winners the file still has for lookups, of numbered(0) to numbered(count - 1).
  static int found(const std::filesystem::path& file, int count, CodeUse code = CodeUse::required);

  TempFolder folder_;
  std::filesystem::path file_ = folder_ / "winners.sqlite";
  std::filesystem::path other_ = folder_ / "other.sqlite";
};

}  // namespace hone::cache
