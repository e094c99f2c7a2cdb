#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/sdk/count_text.h>
#include <hone/session.h>

#include "cache/store.h"
#include "runtime/dispatch/share_folders.h"
#include "runtime/jit/line_info.h"

namespace hone {
namespace {

constexpr std::string_view kFileName = "cache.sqlite";
constexpr std::string_view kCacheEnding = ".sqlite";
constexpr std::string_view kShippedEnding = ".winners";
constexpr std::string_view kSystemFolders = "/usr/local/share/hone:/usr/share/hone";

/// The value of an environment variable; nullopt when it is unset or empty, or when the program has more rights than
/// the user who set it.
std::optional<std::string_view> variable(const char* name) {
  const char* value = ::secure_getenv(name);
  return value && *value ? std::optional<std::string_view>(value) : std::nullopt;
}

/// By the XDG Base Directory Specification; empty when there is no home to put a file in.
std::filesystem::path usual_place() {
  const std::filesystem::path place = std::filesystem::path("hone") / kFileName;
  // The specification says to ignore a relative $XDG_CACHE_HOME. In either variable it would name a file of whatever
  // folder the program is in, with code that somebody else may have put there.
  const auto folder = [](const char* name) {
    const std::filesystem::path path(variable(name).value_or(""));
    return path.is_absolute() ? path : std::filesystem::path();
  };
  if (const auto caches = folder("XDG_CACHE_HOME"); !caches.empty()) return caches / place;
  if (const auto home = folder("HOME"); !home.empty()) return home / ".cache" / place;
  return {};
}

std::vector<std::filesystem::path> split_paths(std::string_view list) {
  std::vector<std::filesystem::path> paths;
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(':'));
    list.remove_prefix(std::min(entry.size() + 1, list.size()));
    if (!entry.empty()) paths.push_back(std::filesystem::absolute(entry));
  }
  return paths;
}

/// The files of shipped winners in a folder, by name; none in one that cannot be read.
std::vector<std::filesystem::path> shipped_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored))
    if (entry->path().extension() == kShippedEnding) files.push_back(entry->path());
  std::sort(files.begin(), files.end());
  return files;
}

/// A file with another ending than those of Hone is taken for a cache: a session reports it if it is none.
bool is_cache(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  const bool is_folder = std::filesystem::is_directory(status);
  return path.extension() == kCacheEnding || (std::filesystem::exists(status) && !is_folder);
}

/// Files named in the list, and of folders the usual files in them.
void read_system_files(SessionOptions& options) {
  const auto list = variable("HONE_CACHE_PATH");
  if (list == "off") return;
  std::vector<std::filesystem::path> paths = split_paths(list.value_or(kSystemFolders));
  if (!list)
    for (std::filesystem::path& folder : share_folders())
      if (std::find(paths.begin(), paths.end(), folder) == paths.end()) paths.insert(paths.begin(), std::move(folder));
  for (const std::filesystem::path& path : paths) {
    if (path.extension() == kShippedEnding) {
      options.shipped_winners.push_back(path);
      continue;
    }
    const bool is_file = is_cache(path);
    options.system_caches.push_back(is_file ? path : path / kFileName);
    if (is_file) continue;
    for (std::filesystem::path& file : shipped_in(path)) options.shipped_winners.push_back(std::move(file));
  }
}

void read_places(SessionOptions& options) {
  std::string_view text = variable("HONE_CACHE").value_or("rw");
  if (text == "off") return;
  read_system_files(options);
  options.cache_read_only = text == "ro" || text.starts_with("ro:");
  if (text == "ro" || text == "rw") {
    options.cache_path = usual_place();
    return;
  }
  const bool has_mode = text.starts_with("ro:") || text.starts_with("rw:");
  const std::string_view path = has_mode ? text.substr(3) : text;
  if (path.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("HONE_CACHE is '{}'; it can be off, ro, rw, ro:PATH, rw:PATH or PATH", text));
  options.cache_path = std::filesystem::absolute(path);
}

bool is_on(const char* name, std::string_view on, std::string_view off, bool otherwise) {
  const auto text = variable(name);
  if (!text) return otherwise;
  if (*text == on) return true;
  if (*text == off) return false;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} is '{}'; it can be {} or {}", name, *text, off, on));
}

MissPolicy miss_policy() {
  const auto text = variable("HONE_ON_MISS");
  if (!text || *text == "heuristic") return MissPolicy::heuristic;
  if (*text == "tune") return MissPolicy::tune;
  if (*text == "error") return MissPolicy::error;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("HONE_ON_MISS is '{}'; it can be heuristic, tune or error", *text));
}

/// A program may have many sessions, and its user needs to read it once.
void say_once(std::string_view message) {
  static std::atomic<bool> is_said = false;
  if (!is_said.exchange(true)) fmt::print(stderr, "hone: {}\n", message);
}

Objective chosen_objective() {
  const auto text = variable("HONE_OBJECTIVE");
  if (!text || *text == name(Objective::time)) return Objective::time;
  if (*text == name(Objective::energy)) return Objective::energy;
  throw Error(ErrorCode::invalid_argument, fmt::format("HONE_OBJECTIVE is '{}'; it can be time or energy", *text));
}

std::int64_t max_bytes(std::int64_t otherwise) {
  const auto text = variable("HONE_CACHE_MAX_BYTES");
  if (!text) return otherwise;
  if (const std::optional<std::int64_t> bytes = parse_byte_count(*text)) {
    if (const std::string refusal = cache::max_bytes_fault(*bytes); !refusal.empty())
      throw Error(ErrorCode::invalid_argument, fmt::format("HONE_CACHE_MAX_BYTES is '{}': {}", *text, refusal));
    return *bytes;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("HONE_CACHE_MAX_BYTES is '{}'; it can be a number of bytes such as 4000000, 64Mi or 1Gi, and "
                          "0 for no limit",
                          *text));
}

}  // namespace

SessionOptions SessionOptions::from_environment() {
  SessionOptions options;
  options.on_miss = miss_policy();
  options.objective = chosen_objective();
  read_places(options);
  options.cache_max_bytes = max_bytes(options.cache_max_bytes);
  options.load_binaries = is_on("HONE_BINARIES", "on", "off", true);
  options.validate_pointers = is_on("HONE_VALIDATE", "1", "0", false);
  line_info_from_environment();  // for the CUDA compiler; a mistake is refused without one, too
  if (const auto folder = variable("HONE_STATS")) options.stats_folder = std::filesystem::absolute(*folder);
  options.report_cache_failure = [](std::string_view message) {
    fmt::print(stderr, "hone: {} (HONE_CACHE, HONE_CACHE_PATH and HONE_STATS name files)\n", message);
  };
  options.report_refused_grid = [](std::string_view message) { fmt::print(stderr, "hone: {}\n", message); };
  if (!variable("HONE_ON_MISS")) options.report_untuned = say_once;
  return options;
}

}  // namespace hone
