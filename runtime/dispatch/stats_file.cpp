#include "runtime/dispatch/stats_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "cache/process.h"

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

/// An existing file is not touched. What could not be written as a whole is an error.
std::error_code write_new_file(const fs::path& path, std::string_view text) {
  const auto last_error = [] { return std::error_code(errno, std::generic_category()); };
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file < 0) return last_error();
  const ssize_t written = ::write(file, text.data(), text.size());
  std::error_code error;
  if (written != static_cast<ssize_t>(text.size()))
    error = written < 0 ? last_error() : std::make_error_code(std::errc::no_space_on_device);
  if (close(file) != 0 && !error) error = last_error();
  return error;
}

std::string counters_json(const SessionCounters& counters) {
  std::string json = "{";
  for (const auto& [name, value] : {std::pair("cache_hits", counters.cache_hits),
                                    std::pair("tunings", counters.tunings),
                                    std::pair("heuristics", counters.heuristics),
                                    std::pair("nearest", counters.nearest),
                                    std::pair("shipped", counters.shipped),
                                    std::pair("compiles", counters.compiles),
                                    std::pair("cache_failures", counters.cache_failures),
                                    std::pair("caches_left_out", counters.caches_left_out),
                                    std::pair("cache_rejects", counters.cache_rejects),
                                    std::pair("refused_grids", counters.refused_grids),
                                    std::pair("stale_hits", counters.stale_hits),
                                    std::pair("waits", counters.waits),
                                    std::pair("not_stored", counters.not_stored)})
    json += fmt::format("\"{}\":{},", name, value);
  return json + fmt::format("\"last_cache_failure\":{}}}", json_string(counters.last_cache_failure));
}

/// The files that are there. A session that is never destroyed, as the default ones of Python are, since work of it may
/// be pending, loses its file when the process exits.
class FilesOfProcess {
 public:
  static FilesOfProcess& get() {
    static auto& files = *new FilesOfProcess();  // sessions of static storage duration outlive the exit handler
    return files;
  }

  /// False once the process exits: then nothing may be written any more.
  bool add(const fs::path& path) {
    const std::unique_lock lock(mutex_, kPatience);
    if (!lock || is_exiting_) return false;
    files_[path] = getpid();
    return true;
  }

  void remove(const fs::path& path) {
    std::error_code ignored;
    fs::remove(path, ignored);
    if (const std::unique_lock lock(mutex_, kPatience); lock) files_.erase(path);
  }

 private:
  /// The lock is held for no time, unless a process was forked meanwhile.
  static constexpr std::chrono::milliseconds kPatience{100};

  FilesOfProcess() {
    std::atexit([] { get().remove_all(); });
  }

  /// A forked child has those of its parent in the list, too.
  void remove_all() {
    const std::unique_lock lock(mutex_, kPatience);
    if (!lock) return;
    is_exiting_ = true;
    std::error_code ignored;
    for (const auto& [path, process] : files_)
      if (process == getpid()) fs::remove(path, ignored);
  }

  std::timed_mutex mutex_;
  std::map<fs::path, pid_t> files_;  ///< with the processes that wrote them
  bool is_exiting_ = false;
};

}  // namespace

StatsFile::StatsFile(const fs::path& folder, const Device& device) {
  if (folder.empty()) return;
  static std::atomic<int> sessions = 0;
  const int session = ++sessions;
  process_ = getpid();
  path_ = folder / fmt::format("hone-{}-{}.json", process_, session);
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  head_ = fmt::format("{{\"process\":{},\"identity\":{},\"session\":{},\"program\":{},\"device\":{},\"name\":{},"
                      "\"started_at\":{},",
                      process_, json_string(cache::this_process()), session, json_string(program.string()),
                      json_string(device.name()), json_string(device.facts().name), unix_time());
}

StatsFile::~StatsFile() {
  if (is_wanted() && getpid() == process_) FilesOfProcess::get().remove(path_);
}

std::string StatsFile::write(const SessionCounters& counters) {
  if (!is_wanted() || getpid() != process_) return "";
  const std::scoped_lock lock(mutex_);
  if (!FilesOfProcess::get().add(path_)) return "";
  const fs::path partial = path_.string() + ".partial";
  const std::string text =
      fmt::format("{}\"updated_at\":{},\"counters\":{}}}\n", head_, unix_time(), counters_json(counters));
  std::error_code error, ignored;
  fs::remove(partial, ignored);
  error = write_new_file(partial, text);
  if (!error) fs::rename(partial, path_, error);
  if (!error) return "";
  fs::remove(partial, ignored);
  return fmt::format("the counters cannot be kept in {}: {}; make that folder, or name another",
                     path_.parent_path().native(), error.message());
}

}  // namespace hone
