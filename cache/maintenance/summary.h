// summarize(): a cache file in numbers.
#pragma once

#include <cstdint>
#include <filesystem>

namespace hone::cache {

struct Summary {
  bool exists = false;
  std::int64_t schema_version = 0;  ///< 0: an empty file
  std::int64_t file_bytes = 0;
  std::int64_t used_bytes = 0;   ///< without free pages
  std::int64_t limit_bytes = 0;  ///< of the file's own; 0: none
  std::int64_t devices = 0;
  std::int64_t toolchains = 0;
  std::int64_t winners = 0;
  std::int64_t lent_winners = 0;     ///< tuned, at a size outside of their own class
  std::int64_t untuned_winners = 0;
  std::int64_t without_code = 0;  ///< winners whose binary was evicted or never came along
  std::int64_t binaries = 0;
  std::int64_t binary_bytes = 0;
  std::int64_t stored_binary_bytes = 0;  ///< packed, as they are in the file
  std::int64_t tunings = 0;
  std::int64_t trials = 0;
};

/// Counts rows as they are; verify() says which are intact. Throws StoreError.
Summary summarize(const std::filesystem::path& path);

}  // namespace hone::cache
