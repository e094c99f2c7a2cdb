// Which cache file a subcommand works with.
#pragma once

#include <filesystem>
#include <string>

#include <hone/session.h>

namespace hone::tuner {

/// The file of `--cache`, else the environment's; empty with "off".
std::filesystem::path chosen_cache_path(const std::string& option, const SessionOptions& from_environment);

/// The same for subcommands that are pointless without a file. Throws CommandError(usage).
std::filesystem::path required_cache_path(const std::string& option, const SessionOptions& from_environment);

}  // namespace hone::tuner
