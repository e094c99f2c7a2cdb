#include "tuner/cache/export_command.h"

#include <fmt/core.h>

#include <hone/tune_arguments.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <ostream>

#include "cache/maintenance/exchange.h"
#include "tuner/cache/cache_output.h"
#include "tuner/cache/exchange_lines.h"
#include "tuner/context/cache_path.h"
#include "tuner/context/written_file.h"
#include "tuner/text/option_values.h"
#include "tuner/text/table.h"
#include "tuner/winners/device_filter.h"

namespace hone::tuner {
namespace {

struct ExportCounts {
  EndLine lines;
  std::int64_t no_text = 0;
  cache::PassCounts pass;
};

ExportCounts write_lines(const std::filesystem::path& path, const CacheExportOptions& options, std::ostream& out) {
  ExportCounts counts;
  const auto write = [&](const ExchangeLine& line) {
    const std::optional<std::string> text = to_line(line);
    if (text) out << *text << '\n';
    else ++counts.no_text;
    return text.has_value();
  };
  cache::ExportVisitor visitor;
  visitor.wanted = [&](const cache::Entry& entry) { return matches_device(entry.key.device, options.device); };
  visitor.entry = [&](const cache::Entry& entry) { counts.lines.winners += write(entry) ? 1 : 0; };
  if (!options.no_binaries) {
    visitor.binary = [&](const std::string& digest, const cache::BinaryRecord& binary) {
      counts.lines.binaries += write(BinaryLine{digest, binary}) ? 1 : 0;
    };
  }
  write(HeaderLine{!options.no_binaries});
  counts.pass = cache::export_entries(path, visitor);
  write(counts.lines);
  return counts;
}

void report(const ExportCounts& counts, const std::filesystem::path& path, const Context& context) {
  if (counts.lines.winners == 0)
    say_nothing_there(path, context, static_cast<std::uint64_t>(counts.pass.damaged_winners));
  const auto warn = [&](std::int64_t count, std::string_view singular, std::string_view what) {
    if (count > 0) context.err << fmt::format("hone: {} {}\n", count_text(count, singular), what);
  };
  warn(counts.pass.damaged_winners, "winner",
       "left out: damaged; see which with: hone cache verify --cache " + printable(shell_quoted(path.string())));
  warn(counts.pass.damaged_binaries, "binary", "left out: damaged or evicted");
  warn(counts.pass.damaged_tunings, "tuning", "left out: damaged");
  warn(counts.no_text, "row", "left out: its text is no UTF-8");
}

}  // namespace

void set_up_cache_export(CLI::App& cache, CacheExportOptions& options) {
  CLI::App* sub = cache.add_subcommand("export");
  file_name(sub->add_option("FILE", options.file));
  file_name(sub->add_option("--cache", options.cache)->take_last());
  one_of(sub->add_option("--device", options.device)->take_last(), words_in(kDeviceKinds));
  sub->add_flag("--no-binaries", options.no_binaries)->disable_flag_override();
}

ExitCode run_cache_export(const CacheExportOptions& options, const Context& context) {
  const std::filesystem::path path = cache_file(options.cache, context);
  const std::filesystem::path target = options.file.empty() ? "-" : options.file;
  const bool to_standard_output = is_standard_output(target);
  WrittenFile file(target, context.out);
  const ExportCounts counts = write_lines(path, options, file.stream());
  file.finish();
  report(counts, path, context);
  if (!to_standard_output) {
    context.out << fmt::format("{} and {} are in {}\n", count_text(counts.lines.winners, "winner"),
                               count_text(counts.lines.binaries, "binary"), printable(options.file));
  }
  return ExitCode::ok;
}

}  // namespace hone::tuner
