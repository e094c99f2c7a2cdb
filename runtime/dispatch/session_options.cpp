#include <cstdlib>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/session.h>

namespace hone {
namespace {

/// The value of an environment variable; nullopt when it is unset or empty.
std::optional<std::string_view> variable(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? std::optional<std::string_view>(value) : std::nullopt;
}

/// HONE_CACHE, else the XDG Base Directory Specification; empty when there is no home to put a file in.
std::filesystem::path default_cache_path() {
  if (const auto path = variable("HONE_CACHE"))
    return *path == "off" ? std::filesystem::path() : std::filesystem::absolute(*path);
  const std::filesystem::path place = "hone/cache.sqlite";
  // The specification says to ignore a relative $XDG_CACHE_HOME.
  if (const auto folder = variable("XDG_CACHE_HOME"); folder && std::filesystem::path(*folder).is_absolute())
    return *folder / place;
  if (const auto home = variable("HOME")) return std::filesystem::path(*home) / ".cache" / place;
  return {};
}

MissPolicy miss_policy() {
  const auto text = variable("HONE_ON_MISS");
  if (!text || *text == "tune") return MissPolicy::tune;
  if (*text == "heuristic") return MissPolicy::heuristic;
  if (*text == "error") return MissPolicy::error;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("HONE_ON_MISS is '{}'; it can be tune, heuristic or error", *text));
}

bool must_validate() {
  const auto text = variable("HONE_VALIDATE");
  if (!text || *text == "0") return false;
  if (*text == "1") return true;
  throw Error(ErrorCode::invalid_argument, fmt::format("HONE_VALIDATE is '{}'; it can be 0 or 1", *text));
}

}  // namespace

SessionOptions SessionOptions::from_environment() {
  SessionOptions options;
  options.on_miss = miss_policy();
  options.cache_path = default_cache_path();
  options.validate_pointers = must_validate();
  return options;
}

}  // namespace hone
