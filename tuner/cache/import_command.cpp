#include "tuner/cache/import_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <system_error>

#include "cache/maintenance/exchange.h"
#include "tuner/cache/cache_output.h"
#include "tuner/cache/exchange_lines.h"
#include "tuner/cache/import_lines.h"
#include "tuner/text/option_values.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

std::string name_of(const std::string& file) { return file == "-" ? "standard input" : printable(file); }

/// Throws CommandError(input).
void open(const std::string& file, std::ifstream& in) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw CommandError(ExitCode::input, fmt::format("'{}' cannot be read: it is a directory", printable(file)));
  }
  in.open(file, std::ios::binary);
  if (!in) {
    throw CommandError(ExitCode::input, fmt::format("'{}' cannot be read: {}", printable(file),
                                                    std::generic_category().message(errno)));
  }
}

}  // namespace

void set_up_cache_import(CLI::App& cache, CacheImportOptions& options) {
  CLI::App* sub = cache.add_subcommand("import");
  file_name(sub->add_option("FILE", options.file));
  file_name(sub->add_option("--cache", options.cache)->take_last());
  sub->add_flag("--no-binaries", options.no_binaries)->disable_flag_override();
  sub->add_flag("--dry-run", options.dry_run)->disable_flag_override();
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_cache_import(const CacheImportOptions& options, const Context& context) {
  if (options.file.empty()) {
    throw CommandError(ExitCode::usage,
                       "no file was given; name one that hone cache export wrote, or - for standard input");
  }
  const std::filesystem::path path = changed_cache_file(options.cache, options.dry_run, context);
  cache::Import import(path);
  std::ifstream in;
  if (options.file != "-") open(options.file, in);
  try {
    collect_lines(options.file == "-" ? *context.environment.in : in, import, !options.no_binaries);
  } catch (const LineError& error) {
    throw CommandError(ExitCode::input, fmt::format("{}, {}; nothing was imported", name_of(options.file),
                                                    error.what()));
  }
  const cache::CopyCounts counts =
      import.merge_into(path, {.binaries = !options.no_binaries, .dry_run = options.dry_run});
  if (options.json) {
    nlohmann::ordered_json json{{"cache", path.string()}, {"dry_run", options.dry_run}};
    json.update(to_json(counts));
    print_json(json, context);
    return ExitCode::ok;
  }
  context.out << fmt::format("{}Winners of {} into {}\n", options.dry_run ? "Dry run: " : "", name_of(options.file),
                             printable(path.string()));
  print_counts(counts, context);
  return ExitCode::ok;
}

}  // namespace hone::tuner
