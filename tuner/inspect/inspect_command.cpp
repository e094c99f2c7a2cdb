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
#include "tuner/problems/families.h"
#include "tuner/problems/selection.h"
#include "tuner/problems/shapes.h"
#include "tuner/text/quantities.h"
#include "tuner/text/report.h"
#include "tuner/text/table.h"
#include "tuner/winners/device_filter.h"
#include "tuner/winners/winner_detail.h"
#include "tuner/winners/winner_json.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::ordered_json;
using cache::StoredWinner;
using Winners = std::vector<StoredWinner>;

/// What the options leave of the winners.
class Filter {
 public:
  /// `all`: whose families and operations may be named besides those that are built in.
  Filter(const InspectOptions& options, const Winners& all) : device_(options.device) {
    if (!options.id.empty()) id_ = parse_winner_id(options.id);
    Names families, operations;
    for (const StoredWinner& stored : all) {
      add(stored.key.problem.family, families);
      add(stored.key.problem.operation, operations);
    }
    if (!options.family.empty()) family_ = parse_family_name(options.family, built_in_families(), families);
    if (!options.ops.empty()) {
      for (const std::string_view op : parse_operation_names(built_in_families(), options.ops, operations))
        ops_.emplace_back(op);
    }
    if (!options.dtypes.empty()) {
      for (const DType dtype : parse_dtypes(options.dtypes)) dtypes_.emplace_back(info(dtype).name);
    }
    if (!options.size.empty()) shape_ = parse_one_shape(options.size);
    if (!options.context.empty()) {
      for (const LaunchContext context : parse_contexts(options.context)) contexts_.emplace_back(name(context));
    }
    if (!options.numerics.empty()) numerics_ = name(parse_numerics(options.numerics));
  }

  bool passes(const StoredWinner& stored) const {
    const cache::KeyRecord& key = stored.key;
    if (id_ && stored.id != *id_) return false;
    if (!family_.empty() && key.problem.family != family_) return false;
    if (shape_ && !serves_shape(key.problem)) return false;
    if (!key.problem.numerics.starts_with(numerics_)) return false;  // "fast, NaN ignored"
    const auto holds = [](const std::vector<std::string>& words, const std::string& word) {
      return words.empty() || std::find(words.begin(), words.end(), word) != words.end();
    };
    return holds(ops_, key.problem.operation) && holds(dtypes_, key.problem.dtype) &&
           holds(contexts_, key.problem.launch_context) && matches_device(key.device, device_);
  }

  /// Whether the options name one problem, which is then shown in detail.
  bool names_one_problem() const { return id_ || (shape_ && ops_.size() == 1 && dtypes_.size() == 1); }

 private:
  using Names = std::vector<std::string_view>;

  static void add(std::string_view name, Names& names) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }

  static TypedShape parse_one_shape(const std::string& text) {
    const std::vector<TypedShape> shapes = parse_shapes(text);
    if (shapes.size() == 1) return shapes.front();
    throw CommandError(ExitCode::usage, fmt::format("'{}' stands for {} shapes; winners of one are shown at a time",
                                                    printable(text), shapes.size()));
  }

  bool serves_shape(const cache::ProblemRecord& problem) const {
    const FamilyRow* row = find_family(problem.family);
    const std::optional<Extents> extents =
        extents_of(*shape_, row ? row->family().extent_names().size() : shape_->size());
    if (!extents) return false;
    for (std::size_t i = 0; i < extents->size(); ++i)
      if ((*extents)[i] < problem.sizes[i].first || (*extents)[i] > problem.sizes[i].last) return false;
    return true;
  }

  std::optional<std::int64_t> id_;
  std::string device_;
  std::vector<std::string> ops_;
  std::vector<std::string> dtypes_;
  std::vector<std::string> contexts_;
  std::string family_;
  std::string_view numerics_;
  std::optional<TypedShape> shape_;
};

/// Winners of one device and toolchain stand under one heading.
bool same_heading(const cache::KeyRecord& a, const cache::KeyRecord& b) {
  return a.device == b.device && a.toolchain.compiler == b.toolchain.compiler &&
         a.toolchain.driver == b.toolchain.driver;
}

std::string heading_text(const cache::KeyRecord& key) {
  return printable(fmt::format("{}; driver {}; {}", device_text(key.device), key.toolchain.driver,
                               key.toolchain.compiler.empty() ? "no compiler" : key.toolchain.compiler));
}

std::vector<std::string> cells_of(const WinnerRow& row, std::int64_t now) {
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
                 {"age", Align::right, 9}});
    for (auto row = begin; row != end; ++row) table.add_row(cells_of(*row, now));
    context.out << (begin == rows.begin() ? "" : "\n") << heading_text(begin->shown.key) << '\n';
    table.print(context.out, context.environment.out_columns());
    begin = end;
  }
}

/// Of a wrong option and a missing path the option is named.
std::filesystem::path path_unless_wrong(const InspectOptions& options, const Context& context) {
  try {
    return required_cache_path(options.cache, context.environment.session_options());
  } catch (const CommandError&) {
    const Filter refuses(options, {});
    throw;
  }
}

/// Says what there is instead of the winners that were asked for.
void explain_nothing(const Winners& all, const std::filesystem::path& path, const Context& context) {
  if (all.empty()) return say_nothing_there(path, context);
  context.err << fmt::format("hone: none of the {} winners in {} matches; list them with: hone inspect --cache {}\n",
                             all.size(), printable(path.string()), printable(shell_quoted(path.string())));
}

}  // namespace

void set_up_inspect(CLI::App& app, InspectOptions& options) {
  CLI::App* sub = app.add_subcommand("inspect");
  sub->add_option("ID", options.id);
  sub->add_option("--device", options.device)->take_last();
  sub->add_option("--family", options.family)->take_last();
  sub->add_option("--op", options.ops)->join(',');
  sub->add_option("--dtype", options.dtypes)->join(',');
  sub->add_option("--size", options.size)->take_last();
  sub->add_option("--context", options.context)->take_last();
  sub->add_option("--numerics", options.numerics)->take_last();
  sub->add_option("--cache", options.cache)->take_last();
  sub->add_flag("--all", options.all)->disable_flag_override();
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_inspect(const InspectOptions& options, const Context& context) {
  const std::filesystem::path path = path_unless_wrong(options, context);
  const cache::Store store(path);
  const Winners all = store.winners();
  const Filter filter(options, all);
  Winners winners;
  std::copy_if(all.begin(), all.end(), std::back_inserter(winners),
               [&](const StoredWinner& stored) { return filter.passes(stored); });

  const bool in_detail = !winners.empty() && (options.all || filter.names_one_problem());
  if (winners.empty()) explain_nothing(all, path, context);
  if (options.json) {
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
      print_detail(stored, measured_winner(all, stored), store.tuning(stored.id), options.all, context);
    }
  } else {
    print_winners(winners, context);
  }
  return winners.empty() && !options.id.empty() ? ExitCode::usage : ExitCode::ok;
}

}  // namespace hone::tuner
