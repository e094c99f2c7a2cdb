// verify(): whether every row and binary of a cache file is what was written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hone::cache {

/// One thing that is damaged.
struct Finding {
  std::string where;  ///< "winner 17", "binary 0f3a…", "trees"
  std::string what;
};

struct VerifyReport {
  std::int64_t schema_version = 0;
  std::int64_t devices = 0;
  std::int64_t winners = 0;
  std::int64_t binaries = 0;
  std::int64_t tunings = 0;
  std::int64_t trials = 0;
  std::int64_t without_code = 0;  ///< winners whose binary was evicted or never came along: no damage
  std::int64_t damaged = 0;       ///< findings, those included that are not listed
  std::vector<Finding> findings;  ///< the first hundred

  bool intact() const { return damaged == 0; }
};

/// Checks the trees of the file, its references, and the digest of every device, winner, binary, tuning and property.
/// Changes nothing. A file that does not exist or is empty is intact. Throws StoreError where the file cannot be read
/// as a cache at all.
VerifyReport verify(const std::filesystem::path& path);

}  // namespace hone::cache
