#include "tuner/cache/export_command.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <hone/tune_arguments.h>
#include <CLI/CLI.hpp>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <ostream>
#include <vector>

#include "cache/errors.h"
#include "cache/identity.h"
#include "cache/maintenance/exchange.h"
#include "cache/shipped_winners.h"
#include "cache/store.h"
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

/// The winners of one device, as files of shipped winners have them. Throws CommandError(input).
ExitCode write_text(const std::filesystem::path& path, const CacheExportOptions& options, const Context& context) {
  std::uint64_t damaged = 0;
  std::vector<cache::StoredWinner> winners = cache::Store(path).winners(&damaged);
  cache::refuse_all_damaged(path, std::ssize(winners), static_cast<std::int64_t>(damaged));
  say_damaged(path, damaged, context);
  std::erase_if(winners, [&](const cache::StoredWinner& stored) {
    return !stored.winner.tuned || cache::is_shipped(stored.winner) ||
           !matches_device(stored.key.device, options.device);
  });
  if (winners.empty())
    throw CommandError(ExitCode::input, fmt::format("'{}' has no tuned winners to write", printable(path.string())));
  const cache::StoredWinner* newest = &winners.front();
  for (const cache::StoredWinner& stored : winners) {
    if (!cache::same_device(stored.key.device, newest->key.device))
      throw CommandError(ExitCode::input, fmt::format("there are winners of {} and of {}; name one with --device",
                                                      printable(stored.key.device.name),
                                                      printable(newest->key.device.name)));
    if (stored.created_at > newest->created_at) newest = &stored;
  }
  const cache::ShippedHeader header{
      .version = HONE_VERSION,
      .date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(newest->created_at))),
      .device = newest->key.device,
      .compiler = newest->key.toolchain.compiler,
      .driver = newest->key.toolchain.driver};
  const std::filesystem::path target = options.file.empty() ? "-" : options.file;
  const bool to_standard_output = is_standard_output(target);
  WrittenFile file(target, context.out);
  file.stream() << cache::shipped_text(header, winners);
  file.finish();
  if (!to_standard_output)
    context.out << fmt::format("{} of {} are in {}\n",
                               count_text(static_cast<std::int64_t>(winners.size()), "tuned winner"),
                               printable(header.device.name), printable(options.file));
  return ExitCode::ok;
}

}  // namespace

void set_up_cache_export(CLI::App& cache, CacheExportOptions& options) {
  CLI::App* sub = cache.add_subcommand("export");
  file_name(sub->add_option("FILE", options.file));
  file_name(sub->add_option("--cache", options.cache)->take_last());
  one_of(sub->add_option("--device", options.device)->take_last(), words_in(kDeviceKinds));
  CLI::Option* no_binaries = sub->add_flag("--no-binaries", options.no_binaries)->disable_flag_override();
  sub->add_flag("--text", options.text)->disable_flag_override()->excludes(no_binaries);
}

ExitCode run_cache_export(const CacheExportOptions& options, const Context& context) {
  const std::filesystem::path path = cache_file(options.cache, context);
  if (!cache::file_exists(path))
    throw CommandError(ExitCode::cache,
                       fmt::format("'{}' cannot be exported: there is no such file", printable(path.string())));
  if (options.text) return write_text(path, options, context);
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
