#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

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

std::int64_t max_bytes(std::int64_t otherwise) {
  const auto text = variable("HONE_CACHE_MAX_BYTES");
  if (!text) return otherwise;
  constexpr std::array<std::pair<std::string_view, int>, 4> kUnits{{{"", 0}, {"Ki", 10}, {"Mi", 20}, {"Gi", 30}}};
  std::int64_t number = -1;
  const auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), number);
  const std::string_view unit = text->substr(static_cast<std::size_t>(end - text->data()));
  for (const auto& [name, shift] : kUnits) {
    if (failure == std::errc{} && unit == name && number >= 0 && number <= INT64_MAX >> shift) return number << shift;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("HONE_CACHE_MAX_BYTES is '{}'; it can be a number of bytes such as 1000000, 64Mi or 1Gi, and 0 "
                          "for no limit",
                          *text));
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
  options.cache_max_bytes = max_bytes(options.cache_max_bytes);
  options.validate_pointers = must_validate();
  return options;
}

}  // namespace hone
