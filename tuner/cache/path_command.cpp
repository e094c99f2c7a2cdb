#include "tuner/cache/path_command.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <ostream>
#include <system_error>

#include "tuner/cache/cache_output.h"
#include "tuner/text/option_values.h"

namespace hone::tuner {

void set_up_cache_path(CLI::App& cache, CachePathOptions& options) {
  CLI::App* sub = cache.add_subcommand("path");
  file_name(sub->add_option("--cache", options.cache)->take_last());
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_cache_path(const CachePathOptions& options, const Context& context) {
  const std::filesystem::path path = std::filesystem::absolute(cache_file(options.cache, context));
  std::error_code ignored;
  const bool exists = std::filesystem::exists(path, ignored);
  if (options.json) {
    print_json({{"cache", path.string()}, {"exists", exists}}, context);
    return ExitCode::ok;
  }
  context.out << path.string() << '\n';
  return ExitCode::ok;
}

}  // namespace hone::tuner
