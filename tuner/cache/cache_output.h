// The hone cache commands have this in common: the file they work on, and how they say what they did.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "cache/maintenance/copy.h"
#include "tuner/context/context.h"
#include "tuner/context/json_output.h"
#include "tuner/text/quantities.h"

namespace hone::tuner {

/// The file of `--cache` or the environment. Throws CommandError(usage) with "off".
std::filesystem::path cache_file(const std::string& option, const Context& context);

/// The same for a command that changes it; `dry_run`: one that only says what it would do. Throws CommandError(usage)
/// where the environment says that the file is only read.
std::filesystem::path changed_cache_file(const std::string& option, bool dry_run, const Context& context);

nlohmann::ordered_json to_json(const cache::CopyCounts& counts);

/// Prints what merging and importing did, a line for each count that is not 0; standard error gets what was left out.
void print_counts(const cache::CopyCounts& counts, const Context& context);
void warn_of_damage(const cache::CopyCounts& counts, const Context& context);

}  // namespace hone::tuner
