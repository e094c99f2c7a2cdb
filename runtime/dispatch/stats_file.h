// StatsFile: a small file with the counters of one session, for whoever watches the program.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <mutex>
#include <string>

#include <hone/session.h>

namespace hone {

/// Exists as long as its session, or until the process exits. A write makes another file and renames it, so that a
/// reader finds a whole one, and what was planted under its name is not followed. A failure fails no call: then there
/// is no file, or an older one. Thread-safe.
class StatsFile {
 public:
  /// `folder` must exist; "": no file.
  StatsFile(const std::filesystem::path& folder, const Device& device);
  ~StatsFile();
  StatsFile(const StatsFile&) = delete;
  StatsFile& operator=(const StatsFile&) = delete;

  bool is_wanted() const { return !path_.empty(); }
  /// Returns why that failed, with what to do; "" if it did not.
  std::string write(const SessionCounters& counters);

 private:
  std::filesystem::path path_;
  std::string head_;   ///< of the JSON object: what does not change
  pid_t process_ = 0;  ///< a forked child is none of the file's business
  std::mutex mutex_;
};

}  // namespace hone
