// Which cache file a subcommand works with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <hone/session.h>

#include "tuner/context/context.h"

namespace hone::tuner {

/// The file of `--cache` (PATH, ro:PATH or rw:PATH, as HONE_CACHE), else the environment's; empty with "off". Throws
/// CommandError(usage) where a mode has no path.
std::filesystem::path chosen_cache_path(const std::string& option, const SessionOptions& from_environment);

/// True if that file is not to be written to.
bool is_only_read(const std::string& option, const SessionOptions& from_environment);

/// The file, for subcommands that are pointless without a file. Throws CommandError(usage).
std::filesystem::path required_cache_path(const std::string& option, const SessionOptions& from_environment);

/// Puts the file of `--cache` into a session's options: a file that is named there without ro: is written to, whatever
/// the environment says, and "off" turns every file off. The subcommands report failures of the cache themselves.
void choose_cache(SessionOptions& options, const std::string& option);

/// Says on standard error that a session goes without a file or a stored winner. `message`: as
/// SessionOptions::report_cache_failure gets it.
void warn_of_failed_cache(std::string_view message, const Context& context);

/// Says on standard error that there is nothing to work on, and what to run. `damaged`: winners that say_damaged() has
/// spoken of; with them, the file is not empty.
void say_nothing_there(const std::filesystem::path& path, const Context& context, std::uint64_t damaged = 0);

/// Says on standard error, where there are any, that damaged winners are left out, and what to do.
void say_damaged(const std::filesystem::path& path, std::uint64_t damaged, const Context& context);

}  // namespace hone::tuner
