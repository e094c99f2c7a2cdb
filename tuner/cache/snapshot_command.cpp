#include "tuner/cache/snapshot_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <ostream>

#include "cache/maintenance/snapshot.h"
#include "tuner/cache/cache_output.h"
#include "tuner/context/written_file.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {

void set_up_cache_snapshot(CLI::App& cache, CacheSnapshotOptions& options) {
  CLI::App* sub = cache.add_subcommand("snapshot");
  file_name(sub->add_option("FILE", options.file));
  file_name(sub->add_option("--cache", options.cache)->take_last());
  sub->add_flag("--no-trials", options.no_trials)->disable_flag_override();
  sub->add_flag("--no-binaries", options.no_binaries)->disable_flag_override();
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_cache_snapshot(const CacheSnapshotOptions& options, const Context& context) {
  if (options.file.empty()) {
    throw CommandError(ExitCode::usage, "no file was given; name the snapshot, such as winners.sqlite");
  }
  const std::filesystem::path path = cache_file(options.cache, context);
  std::error_code ignored;
  if (std::filesystem::equivalent(path, options.file, ignored)) {
    throw CommandError(ExitCode::usage,
                       fmt::format("'{}' is the cache itself; a snapshot needs another name", printable(options.file)));
  }
  refuse_what_belongs_to_a_database(options.file);
  const cache::CopyCounts counts =
      cache::snapshot(path, options.file, {.binaries = !options.no_binaries, .tunings = !options.no_trials});
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(options.file));
  if (options.json) {
    print_json({{"cache", path.string()},
                {"snapshot", options.file},
                {"bytes", bytes},
                {"winners", counts.added},
                {"binaries", counts.binaries},
                {"damaged_winners", counts.damaged_winners},
                {"damaged_tunings", counts.damaged_tunings},
                {"without_code", counts.without_code}},
               context);
  } else {
    context.out << fmt::format("{} with {} are in {}, {}\n", count_text(counts.added, "winner"),
                               count_text(counts.binaries, "binary"), printable(options.file), format_bytes(bytes));
  }
  warn_of_damage(counts, context);
  return ExitCode::ok;
}

}  // namespace hone::tuner
