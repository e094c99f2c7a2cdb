#include "tuner/context/cache_path.h"

#include <fmt/core.h>

#include <hone/tune_arguments.h>

#include <ostream>
#include <system_error>

#include "tuner/text/color.h"
#include "tuner/text/command_error.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {

namespace {

bool has_mode(const std::string& option) { return option.starts_with("ro:") || option.starts_with("rw:"); }

}  // namespace

bool is_only_read(const std::string& option, const SessionOptions& from_environment) {
  return option.empty() ? from_environment.cache_read_only : option.starts_with("ro:");
}

std::filesystem::path chosen_cache_path(const std::string& option, const SessionOptions& from_environment) {
  if (option == "off") return {};
  if (option.empty()) return from_environment.cache_path;
  const std::string path = has_mode(option) ? option.substr(3) : option;
  if (path.empty())
    throw CommandError(ExitCode::usage,
                       fmt::format("--cache is '{}', without a path; give --cache {}PATH", option, option));
  return path;
}

std::filesystem::path required_cache_path(const std::string& option, const SessionOptions& from_environment) {
  std::filesystem::path path = chosen_cache_path(option, from_environment);
  if (path.empty()) {
    throw CommandError(ExitCode::usage,
                       "the cache is off, so there is no file to work with: HONE_CACHE says so, or neither "
                       "XDG_CACHE_HOME nor HOME names a folder; give --cache PATH");
  }
  return path;
}

void choose_cache(SessionOptions& options, const std::string& option) {
  options.cache_path = chosen_cache_path(option, options);
  options.cache_read_only = is_only_read(option, options);
  if (option == "off") {
    options.system_caches.clear();
    options.shipped_winners.clear();
  }
  options.report_cache_failure = nullptr;
}

void warn_of_failed_cache(std::string_view message, const Context& context) {
  context.err << paint("hone: warning:", Paint::yellow)
              << fmt::format(" {} (--cache, HONE_CACHE, HONE_CACHE_PATH and HONE_STATS name files)\n",
                             printable(message));
}

void say_damaged(const std::filesystem::path& path, std::uint64_t damaged, const Context& context) {
  if (damaged == 0) return;
  const std::string option = printable(shell_quoted(path.string()));
  context.err << fmt::format(
      "hone: {} in {} {} damaged and left out; see what is wrong with: hone cache verify --cache "
      "{}, and save the rest with: hone cache repair --cache {}\n",
      count_text(static_cast<std::int64_t>(damaged), "winner"), printable(path.string()), damaged == 1 ? "is" : "are",
      option, option);
}

void say_nothing_there(const std::filesystem::path& path, const Context& context, std::uint64_t damaged) {
  if (damaged > 0) return;
  std::error_code ignored;
  const std::string file = printable(path.string());
  context.err << fmt::format("hone: {}; fill it with: hone tune --cache {}\n",
                             std::filesystem::exists(path, ignored)
                                 ? fmt::format("the cache {} holds no winner yet", file)
                                 : fmt::format("there is no cache file {} yet", file),
                             printable(shell_quoted(path.string())));
}

}  // namespace hone::tuner
