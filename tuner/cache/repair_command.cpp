#include "tuner/cache/repair_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <ostream>

#include "cache/maintenance/repair.h"
#include "tuner/cache/cache_output.h"
#include "tuner/text/option_values.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

using cache::RepairReport;

void print_report(const std::filesystem::path& path, const RepairReport& report, const Context& context) {
  const std::string file = printable(path.string());
  if (report.was_intact) {
    context.out << fmt::format("{} is intact: there is nothing to repair\n", file);
    return;
  }
  context.out << fmt::format("{} is repaired\n  {:<10}winners saved, with {}\n", file, report.winners,
                             count_text(report.binaries, "binary"));
  const auto line = [&](std::int64_t count, std::string_view what) {
    if (count > 0) context.out << fmt::format("  {:<10}{}\n", count, what);
  };
  line(report.damaged_winners, "winners lost: found, but damaged");
  line(report.without_code, "winners without code, which is compiled again when it is needed");
  line(report.without_trials, "winners without trials");
  line(report.unreadable_pages, fmt::format("of {} pages could not be read", report.pages));
  context.out << fmt::format("The damaged file is {}\n", printable(report.backup.string()));
}

}  // namespace

void set_up_cache_repair(CLI::App& cache, CacheRepairOptions& options) {
  CLI::App* sub = cache.add_subcommand("repair");
  file_name(sub->add_option("--cache", options.cache)->take_last());
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_cache_repair(const CacheRepairOptions& options, const Context& context) {
  const std::filesystem::path path = changed_cache_file(options.cache, false, context);
  const RepairReport report = cache::repair(path);
  if (!options.json) {
    print_report(path, report, context);
    return ExitCode::ok;
  }
  nlohmann::ordered_json backup = nullptr;
  if (!report.was_intact) backup = report.backup.string();
  print_json({{"cache", path.string()},
              {"was_intact", report.was_intact},
              {"backup", backup},
              {"pages", report.pages},
              {"unreadable_pages", report.unreadable_pages},
              {"rows", report.rows},
              {"winners", report.winners},
              {"binaries", report.binaries},
              {"damaged_winners", report.damaged_winners},
              {"without_code", report.without_code},
              {"without_trials", report.without_trials}},
             context);
  return ExitCode::ok;
}

}  // namespace hone::tuner
