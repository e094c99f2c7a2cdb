#include "runtime/dispatch/stats_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace hone {
namespace {

namespace fs = std::filesystem;

/// A JSON string. Bytes that are no ASCII stay as they are.
std::string json_string(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      json.append("\\").push_back(c);
    else if (static_cast<unsigned char>(c) < 0x20)
      json += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      json += c;
  }
  return json + "\"";
}

std::int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// False where it could not be written as a whole. An existing file is not touched.
bool write_new_file(const fs::path& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file < 0) return false;
  const bool is_whole = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  return close(file) == 0 && is_whole;
}

std::string counters_json(const SessionCounters& counters) {
  return fmt::format(
      "{{\"cache_hits\":{},\"tunings\":{},\"heuristics\":{},\"nearest\":{},\"compiles\":{},\"cache_failures\":{},"
      "\"caches_left_out\":{},\"cache_rejects\":{},\"stale_hits\":{},\"waits\":{},\"last_cache_failure\":{}}}",
      counters.cache_hits, counters.tunings, counters.heuristics, counters.nearest, counters.compiles,
      counters.cache_failures, counters.caches_left_out, counters.cache_rejects, counters.stale_hits, counters.waits,
      json_string(counters.last_cache_failure));
}

}  // namespace

StatsFile::StatsFile(const fs::path& folder, const Device& device) {
  if (folder.empty()) return;
  static std::atomic<int> sessions = 0;
  const int session = ++sessions;
  process_ = getpid();
  path_ = folder / fmt::format("hone-{}-{}.json", process_, session);
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  head_ = fmt::format("{{\"process\":{},\"session\":{},\"program\":{},\"device\":{},\"name\":{},\"started_at\":{},",
                      process_, session, json_string(program.string()), json_string(device.name()),
                      json_string(device.facts().name), unix_time());
}

StatsFile::~StatsFile() {
  std::error_code ignored;
  if (is_wanted() && getpid() == process_) fs::remove(path_, ignored);
}

void StatsFile::write(const SessionCounters& counters) {
  if (!is_wanted() || getpid() != process_) return;
  const std::scoped_lock lock(mutex_);
  const fs::path partial = path_.string() + ".partial";
  const std::string text =
      fmt::format("{}\"updated_at\":{},\"counters\":{}}}\n", head_, unix_time(), counters_json(counters));
  std::error_code error;
  fs::remove(partial, error);
  if (!write_new_file(partial, text)) return;
  fs::rename(partial, path_, error);
  if (error) fs::remove(partial, error);
}

}  // namespace hone
