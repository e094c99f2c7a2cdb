// Reductions next to CUB and cuBLAS on the same buffers, in one run: see benchmarks/README.md for what is measured how.
#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/hone.h>
#include <hone/kernel_family.h>

#include "benchmarks/accuracy/accuracy.h"
#include "benchmarks/common/program.h"
#include "benchmarks/sweep/summary.h"

namespace {

using namespace hone;
using namespace hone::benchmarks;
using Clock = std::chrono::steady_clock;

/// More rows than this are in the JSON file alone, unless they are asked for.
constexpr std::size_t kRowsInFull = 120;

struct Options {
  RunOptions run{.budget_ms = 60};
  CellSelection cells;
  std::string sizes;
  SettingOptions settings;
  std::vector<std::string> alignments{"aligned", "misaligned"};
  bool reproducible = false;
  double seconds = 240;
  TimingOptions timing;
  bool with_peers = true;
  bool with_accuracy = true;
  bool all_rows = false;
};

void set_up(CommandLine& command_line, Options& options) {
  command_line.describe("Reductions by Hone, CUB and cuBLAS, side by side");
  add_run_options(command_line, options.run);
  command_line.add("--ops", options.cells.operations, "operations (default: all)");
  command_line.add("--dtypes", options.cells.dtypes, "dtypes (default: all)");
  command_line.add("--sizes", options.sizes, "1000,2^20+1,2^8..2^30/2 (default: see benchmarks/README.md)");
  add_setting_options(command_line, options.settings);
  command_line.add("--alignments", options.alignments, "aligned, misaligned (default: both)",
                   {"aligned", "misaligned"});
  command_line.add_flag("--reproducible", options.reproducible,
                        "reproducible numerics of Hone; its fast numerics are a further peer, 'fast'");
  command_line.add("--time", options.seconds, "begin no cell after so many seconds (default: 240)");
  add_timing_options(command_line, options.timing);
  command_line.add_flag("!--no-peers", options.with_peers, "time Hone alone");
  command_line.add_flag("!--no-accuracy", options.with_accuracy, "leave out the accuracy figures");
  command_line.add_flag("--rows", options.all_rows, "print every row, however many there are");
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

CellSelection selection_of(const Options& options) {
  CellSelection selection = options.cells;
  selection.sizes = parse_sizes(options.sizes);
  selection.settings = options.settings.settings();
  selection.numerics = options.reproducible ? Numerics::reproducible : Numerics::fast;
  selection.offsets.clear();
  if (has(options.alignments, "aligned")) selection.offsets.push_back(0);
  if (has(options.alignments, "misaligned")) selection.offsets.push_back(1);
  return selection;
}

/// Returns true if everyone had the same results.
bool run(const Options& options) {
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Session session = make_session(options.run);
  const std::vector<Cell> cells = choose_cells(reduce_family(), selection_of(options));
  Comparison comparison(session,
                        options.with_peers ? make_peers(session.device()) : std::vector<std::unique_ptr<Peer>>{}, cells,
                        options.timing,
                        options.reproducible ? std::optional(OtherHone{"fast", session}) : std::nullopt);

  SweepRun run{.device = session.device()->facts(),
               .budget_ms = options.run.budget_ms,
               .cells = cells.size()};
  for (const auto& peer : comparison.peers()) run.peers.push_back(fmt::format("{} {}", peer->name(), peer->version()));
  run.missing_peers = options.with_peers ? missing_peers(*session.device()) : "peers were not asked for";
  fmt::print("{}\n", headline(run));
  std::fflush(stdout);

  std::vector<Row> rows;
  for (const Cell& cell : cells) {
    if (seconds() > options.seconds) break;
    for (Row& row : comparison.run(cell)) rows.push_back(std::move(row));
    ++run.measured_cells;
  }
  run.tuning_seconds = comparison.tuning_seconds();
  run.total_seconds = seconds();

  if (options.all_rows || rows.size() <= kRowsInFull) fmt::print("{}", row_table(rows));
  fmt::print("{}", summary_tables(rows, run));
  nlohmann::ordered_json json = to_json(rows, run);
  if (options.with_accuracy) {
    const std::vector<AccuracyRow> accuracy =
        measure_accuracy(session, comparison.peers(), comparison.arena().data(), comparison.arena().size_bytes());
    fmt::print("\n{}", accuracy_table(accuracy));
    json["accuracy"] = to_json(accuracy);
  }
  write_json(options.run.json, json);
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) {
    return std::all_of(row.peers.begin(), row.peers.end(), [](const PeerTiming& peer) { return peer.agrees; });
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return hone::benchmarks::run_program(
      "reduce_vs_peers", argc, argv, [&](CommandLine& command_line) { set_up(command_line, options); },
      [&] { return run(options); });
}
