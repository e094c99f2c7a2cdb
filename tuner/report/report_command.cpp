#include "tuner/report/report_command.h"

#include <fmt/core.h>

#include <hone/tune_arguments.h>
#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <ostream>
#include <system_error>
#include <vector>

#include "cache/errors.h"
#include "cache/store.h"
#include "tuner/context/cache_path.h"
#include "tuner/context/written_file.h"
#include "tuner/problems/selection.h"
#include "tuner/report/report_data.h"
#include "tuner/report/report_page.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"
#include "tuner/winners/device_filter.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;

/// The page stays below 2 MB with its styles and script.
constexpr std::size_t kMostDataBytes = 1'800'000;

ReportedCache read_cache(const fs::path& path, const FilterOptions& filter) {
  ReportedCache read{.path = path, .all = {}, .named = {}};
  read.all = cache::Store(path).winners(&read.damaged_winners);
  cache::refuse_all_damaged(path, std::ssize(read.all), static_cast<std::int64_t>(read.damaged_winners));
  const WinnerFilter named(filter, read.all);
  for (std::size_t i = 0; i < read.all.size(); ++i)
    if (named.passes(read.all[i])) read.named.push_back(i);
  return read;
}

fs::path compared_path(const ReportOptions& options, const Context& context) {
  const fs::path path = required_cache_path(options.compare, context.environment.session_options());
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw CommandError(ExitCode::input,
                       fmt::format("--compare names {}, but there is no such file", printable(path.string())));
  return path;
}

void say_what_is_left_out(const ReportedCounts& counts, const fs::path& path, std::ostream& err) {
  const std::string file = printable(path.string());
  if (counts.damaged_tunings > 0)
    err << fmt::format("hone: the trials of {} in {} are damaged and left out; see: hone cache verify --cache {}\n",
                       count_text(static_cast<std::int64_t>(counts.damaged_tunings), "winner"), file,
                       printable(shell_quoted(path.string())));
  if (counts.shown_winners < counts.winners || counts.shown_tunings + counts.damaged_tunings < counts.tunings)
    err << fmt::format(
        "hone: the report has room for {} of {} winners of {}, and for the trials of {} of {}; name fewer with "
        "--device, --family, --op, --dtype, --size or --context\n",
        counts.shown_winners, counts.winners, file, counts.shown_tunings, counts.tunings);
}

}  // namespace

void set_up_report(CLI::App& app, ReportOptions& options) {
  CLI::App* sub = app.add_subcommand("report");
  file_name(sub->add_option("-o,--output", options.output)->take_last());
  file_name(sub->add_option("--compare", options.compare)->take_last());
  one_of(sub->add_option("--device", options.filter.device)->take_last(), words_in(kDeviceKinds));
  one_of(sub->add_option("--family", options.filter.family)->take_last(), family_words);
  some_of(sub->add_option("--op", options.filter.ops)->join(','), operation_words, kEveryOp);
  some_of(sub->add_option("--dtype", options.filter.dtypes)->join(','), dtype_words, kAll);
  sub->add_option("--size", options.filter.size)->take_last();
  one_of(sub->add_option("--context", options.filter.context)->take_last(), words_in(kContextWords));
  one_of(sub->add_option("--numerics", options.filter.numerics)->take_last(), words_in(kNumericsNames));
  file_name(sub->add_option("--cache", options.cache)->take_last());
}

ExitCode run_report(const ReportOptions& options, const Context& context) {
  const fs::path path = required_cache_path(options.cache, context.environment.session_options());
  std::vector<ReportedCache> caches{read_cache(path, options.filter)};
  if (!options.compare.empty()) caches.push_back(read_cache(compared_path(options, context), options.filter));
  WrittenFile file(options.output, context.out);
  const ReportData data = report_data(caches, context.environment.unix_time(), kMostDataBytes);
  const std::string page = report_page(data.json);
  file.stream() << page;
  file.finish();

  for (const ReportedCache& read : caches) say_damaged(read.path, read.damaged_winners, context);
  if (caches.front().all.empty())
    say_nothing_there(path, context, caches.front().damaged_winners);
  else if (caches.front().named.empty())
    context.err << fmt::format("hone: none of the {} winners in {} matches\n", caches.front().all.size(),
                               printable(path.string()));
  for (std::size_t i = 0; i < caches.size(); ++i) say_what_is_left_out(data.counts[i], caches[i].path, context.err);
  if (is_standard_output(options.output)) return ExitCode::ok;
  context.out << fmt::format("{} with {}{} in {}; open it in a browser\n",
                             count_text(static_cast<std::int64_t>(data.counts.front().shown_winners), "winner"),
                             count_text(static_cast<std::int64_t>(data.counts.front().shown_tunings), "tuning"),
                             caches.size() > 1 ? ", beside those of the other cache, are" : " are",
                             printable(options.output));
  return ExitCode::ok;
}

}  // namespace hone::tuner
