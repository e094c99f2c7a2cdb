#include "tuner/inspect/inspect_command.h"

#include <fmt/core.h>

#include <hone/tune_arguments.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <ostream>
#include <tuple>
#include <vector>

#include "cache/store.h"
#include "tuner/context/cache_path.h"
#include "tuner/context/json_output.h"
#include "tuner/inspect/winner_rows.h"
#include "tuner/problems/problem_text.h"
#include "tuner/problems/selection.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/report.h"
#include "tuner/text/table.h"
#include "tuner/winners/device_filter.h"
#include "tuner/winners/loan_regrets.h"
#include "tuner/winners/misfit.h"
#include "tuner/winners/winner_detail.h"
#include "tuner/winners/winner_filter.h"
#include "tuner/winners/winner_json.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::ordered_json;
using cache::StoredWinner;
using Winners = std::vector<StoredWinner>;

/// Winners of one device and toolchain stand under one heading.
bool same_heading(const cache::KeyRecord& a, const cache::KeyRecord& b) {
  return a.device == b.device && a.toolchain.compiler == b.toolchain.compiler &&
         a.toolchain.driver == b.toolchain.driver;
}

std::string heading_text(const cache::KeyRecord& key) {
  const cache::ToolchainRecord& toolchain = key.toolchain;  // a planned winner has no driver
  return printable(fmt::format("{}; {}; {}", device_text(key.device),
                               toolchain.driver.empty() ? "no driver" : "driver " + toolchain.driver,
                               toolchain.compiler.empty() ? "no compiler" : toolchain.compiler));
}

/// True if a family has winners of several sources here, such as the source before and after an edit.
bool has_several_sources(const std::vector<WinnerRow>& rows, const cache::KeyRecord& key) {
  return std::ranges::any_of(rows, [&](const WinnerRow& row) {
    return row.shown.key.problem.family == key.problem.family &&
           row.shown.key.toolchain.family_digest != key.toolchain.family_digest;
  });
}

std::vector<std::string> cells_of(const WinnerRow& row, const std::vector<WinnerRow>& rows, std::int64_t now) {
  const StoredWinner& stored = row.shown;
  const cache::WinnerRecord& winner = stored.winner;
  const double gbps = winner_gbps(stored);
  return {fmt::format("{}", stored.id),
          problem_text(stored.key.problem),
          fmt::format("{}", stored.key.problem.alignment),
          sizes_text(stored, row.sizes),
          short_policy(winner.candidate.policy),
          blocks_cell(winner.candidate.max_blocks),
          winner.candidate.registers > 0 ? fmt::format("{}", winner.candidate.registers) : std::string(kUnknown),
          percent_text(winner_occupancy(stored)),
          how_text(stored) == "heuristic" ? std::string(kUnknown) : measured_at_text(stored),
          us_text(winner_us(stored)),
          gbps_text(gbps),
          share_text(gbps, stored.key.device.peak_bandwidth_gbps),
          row.how(),
          has_several_sources(rows, stored.key) ? short_digest(stored.key.toolchain.family_digest)
                                                : std::string(kUnknown),
          format_age(now - stored.created_at)};
}

void print_winners(const Winners& winners, const Context& context) {
  const std::int64_t now = context.environment.unix_time();
  const std::vector<WinnerRow> rows = join_classes(winners);
  for (auto begin = rows.begin(); begin != rows.end();) {
    const auto end = std::find_if(begin, rows.end(),
                                  [&](const WinnerRow& row) { return !same_heading(begin->shown.key, row.shown.key); });
    Table table({{"id", Align::right},
                 {"problem"},
                 {"align", Align::right, 8},
                 {"n", Align::right},
                 {"winner", Align::left, 1},
                 {"blocks", Align::right, 5},
                 {"regs", Align::right, 7, true},
                 {"occupancy", Align::right, 6, true},
                 {"at n", Align::right},
                 {"µs", Align::right},
                 {"GB/s", Align::right, 2},
                 {"of peak", Align::right, 3, true},
                 {"how", Align::left, 4},
                 {"source", Align::left, 2, true},
                 {"age", Align::right, 9}});
    for (auto row = begin; row != end; ++row) table.add_row(cells_of(*row, rows, now));
    context.out << (begin == rows.begin() ? "" : "\n") << heading_text(begin->shown.key) << '\n';
    table.print(context.out, context.environment.out_columns());
    begin = end;
  }
}

std::string regret_text(double regret) { return fmt::format("{:.1f} %", 100 * regret); }

Json to_json(const LoanRegrets& row) {
  Json loans = Json::array();
  for (const JudgedLoan& loan : row.judged)
    loans.push_back(
        {{"borrower", to_string(loan.borrower)},
         {"lender", to_string(loan.lender)},
         {"regret", loan.regret},
         {"model_regret", loan.model_regret ? Json(*loan.model_regret) : Json(nullptr)}});
  return {{"kind", row.kind}, {"unjudged", row.unjudged}, {"loans", std::move(loans)}};
}

/// Prints what it would cost these winners' classes to be served by others.
void print_loans(const Winners& winners, const cache::Store& store, bool as_json, const Context& context) {
  const auto tuning_of = [&](const StoredWinner& stored) { return store.tuning(stored.id); };
  const std::vector<LoanRegrets> rows = loan_regrets(tuned_classes(winners, tuning_of));
  if (as_json) {
    Json json{{"loans", Json::array()}};
    for (const LoanRegrets& row : rows) json["loans"].push_back(to_json(row));
    return print_json(json, context);
  }
  Table table({{"loan"},
               {"judged", Align::right},
               {"not judged", Align::right},
               {"mean", Align::right},
               {"worst", Align::right},
               {"model", Align::right, 3},
               {"where", Align::left, 1},
               {"lender", Align::left, 2}});
  for (const LoanRegrets& row : rows) {
    const JudgedLoan* worst = row.worst();
    const auto if_judged = [&](const std::string& text) { return worst ? text : std::string(kUnknown); };
    table.add_row({row.kind, fmt::format("{}", row.judged.size()), fmt::format("{}", row.unjudged),
                   if_judged(regret_text(row.mean())), if_judged(worst ? regret_text(worst->regret) : ""),
                   if_judged(regret_text(row.model_mean())),
                   if_judged(worst ? problem_label(worst->borrower) : ""),
                   if_judged(worst ? problem_label(worst->lender) : "")});
  }
  table.print(context.out, context.environment.out_columns());
}

/// If an option is wrong and the path is missing, the option is named.
std::filesystem::path path_unless_wrong(const InspectOptions& options, const Context& context) {
  try {
    return required_cache_path(options.cache, context.environment.session_options());
  } catch (const CommandError&) {
    const WinnerFilter refuses(options.filter, {});
    throw;
  }
}

/// Says what there is instead of the winners that were asked for.
void explain_nothing(const Winners& all, std::uint64_t damaged, const std::filesystem::path& path,
                     const Context& context) {
  if (all.empty()) return say_nothing_there(path, context, damaged);
  context.err << fmt::format("hone: none of the {} winners in {} matches; list them with: hone inspect --cache {}\n",
                             all.size(), printable(path.string()), printable(shell_quoted(path.string())));
}

}  // namespace

void set_up_inspect(CLI::App& app, InspectOptions& options) {
  CLI::App* sub = app.add_subcommand("inspect");
  sub->add_option("ID", options.filter.id);
  one_of(sub->add_option("--device", options.filter.device)->take_last(), words_in(kDeviceKinds));
  one_of(sub->add_option("--family", options.filter.family)->take_last(), family_words);
  some_of(sub->add_option("--op", options.filter.ops)->join(','), operation_words, kEveryOp);
  some_of(sub->add_option("--dtype", options.filter.dtypes)->join(','), dtype_words, kAll);
  sub->add_option("--size", options.filter.size)->take_last();
  one_of(sub->add_option("--context", options.filter.context)->take_last(), words_in(kContextWords));
  one_of(sub->add_option("--numerics", options.filter.numerics)->take_last(), words_in(kNumericsNames));
  one_of(sub->add_option("--objective", options.filter.objective)->take_last(), words_in(kObjectiveNames));
  file_name(sub->add_option("--cache", options.cache)->take_last());
  CLI::Option* all = sub->add_flag("--all", options.all)->disable_flag_override();
  sub->add_flag("--loans", options.loans)->disable_flag_override()->excludes(all);
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_inspect(const InspectOptions& options, const Context& context) {
  const std::filesystem::path path = path_unless_wrong(options, context);
  const cache::Store store(path);
  std::uint64_t damaged = 0;
  const Winners all = store.winners(&damaged);
  say_damaged(path, damaged, context);
  const WinnerFilter filter(options.filter, all);
  const Winners winners = filter.matches(all);

  const bool in_detail = !winners.empty() && (options.all || filter.names_one_problem());
  if (winners.empty()) explain_nothing(all, damaged, path, context);
  if (options.loans) {
    print_loans(winners, store, options.json, context);
  } else if (options.json) {
    Json json{{"cache", path.string()}, {"winners", Json::array()}};
    for (const StoredWinner& stored : winners) {
      Json& entry = json["winners"].emplace_back(to_json(stored, measured_winner(all, stored)));
      if (!in_detail) continue;
      const std::optional<cache::TuningRecord> tuning = store.tuning(stored.id);
      entry["tuning"] = tuning ? to_json(*tuning) : Json(nullptr);
    }
    print_json(json, context);
  } else if (in_detail) {
    for (const StoredWinner& stored : winners) {
      if (&stored != &winners.front()) context.out << '\n';
      print_detail(stored, measured_winner(all, stored), path, store.tuning(stored.id), options.all, context);
    }
  } else {
    print_winners(winners, context);
    for (const Misfit& misfit : misfits_of(winners))
      context.err << printable(fmt::format("hone: winner {} is not used: {}; see: hone inspect {} --cache {}",
                                           misfit.id, misfit.why, misfit.id, shell_quoted(path.string())))
                  << '\n';
  }
  if (all.empty() && damaged > 0) return ExitCode::cache;
  return winners.empty() && !options.filter.id.empty() ? ExitCode::usage : ExitCode::ok;
}

}  // namespace hone::tuner
