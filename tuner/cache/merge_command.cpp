#include "tuner/cache/merge_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <ostream>

#include "cache/maintenance/merge.h"
#include "tuner/cache/cache_output.h"
#include "tuner/text/option_values.h"
#include "tuner/text/table.h"

namespace hone::tuner {

void set_up_cache_merge(CLI::App& cache, CacheMergeOptions& options) {
  CLI::App* sub = cache.add_subcommand("merge");
  file_name(sub->add_option("FILES", options.files));
  file_name(sub->add_option("--cache", options.cache)->take_last());
  sub->add_flag("--no-binaries", options.no_binaries)->disable_flag_override();
  sub->add_flag("--dry-run", options.dry_run)->disable_flag_override();
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_cache_merge(const CacheMergeOptions& options, const Context& context) {
  if (options.files.empty()) {
    throw CommandError(ExitCode::usage, "no file was given; name the cache files to merge into this one");
  }
  const std::filesystem::path path = changed_cache_file(options.cache, options.dry_run, context);
  const std::vector<std::filesystem::path> sources(options.files.begin(), options.files.end());
  for (const std::filesystem::path& source : sources) {
    std::error_code ignored;
    if (std::filesystem::symlink_status(source, ignored).type() == std::filesystem::file_type::not_found)
      throw CommandError(ExitCode::cache, fmt::format("'{}' cannot be merged: there is no such file; a shard without "
                                                      "problems writes none, so name those that are there",
                                                      printable(source.string())));
    if (!std::filesystem::equivalent(source, path, ignored)) continue;
    throw CommandError(ExitCode::usage, fmt::format("'{}' cannot be merged into itself", printable(source.string())));
  }
  const cache::CopyCounts counts =
      cache::merge(path, sources, {.binaries = !options.no_binaries, .dry_run = options.dry_run});
  if (options.json) {
    nlohmann::ordered_json json{{"cache", path.string()}, {"dry_run", options.dry_run}};
    json.update(to_json(counts));
    print_json(json, context);
  } else {
    context.out << fmt::format("{}Winners of {} into {}\n", options.dry_run ? "Dry run: " : "",
                               count_text(static_cast<std::int64_t>(sources.size()), "file"),
                               printable(path.string()));
    print_counts(counts, context);
  }
  warn_of_damage(counts, context);
  return ExitCode::ok;
}

}  // namespace hone::tuner
