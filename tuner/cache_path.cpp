#include "tuner/cache_path.h"

#include "tuner/command_error.h"

namespace hone::tuner {

std::filesystem::path chosen_cache_path(const std::string& option, const SessionOptions& from_environment) {
  if (option == "off") return {};
  return option.empty() ? from_environment.cache_path : std::filesystem::path(option);
}

std::filesystem::path required_cache_path(const std::string& option, const SessionOptions& from_environment) {
  std::filesystem::path path = chosen_cache_path(option, from_environment);
  if (path.empty()) {
    throw CommandError(ExitCode::usage,
                       "the cache is off, so there is no file to work with; give --cache PATH, or unset "
                       "HONE_CACHE");
  }
  return path;
}

void choose_cache(SessionOptions& options, const std::string& option) {
  options.cache_path = chosen_cache_path(option, options);
  if (!option.empty()) options.cache_read_only = false;
  if (option == "off") options.system_caches.clear();
  options.report_cache_failure = nullptr;
}

}  // namespace hone::tuner
