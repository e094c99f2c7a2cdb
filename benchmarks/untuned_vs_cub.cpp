// Reductions that nobody tuned next to CUB, on the same buffers, in one run: an empty cache and the model's first
// choice, or the winners of a given cache file or file of shipped winners, and what is lent from them. With --lend,
// aligned arrays are tuned, and misaligned ones have their winners on loan; their own tuning is a further contestant,
// 'own'.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/error.h>
#include <hone/hone.h>
#include <hone/kernel_family.h>

#include "benchmarks/common/program.h"
#include "benchmarks/common/report.h"
#include "benchmarks/sweep/summary.h"

namespace {

using namespace hone;
using namespace hone::benchmarks;
using Clock = std::chrono::steady_clock;

/// The share of the device's memory that inputs may take.
constexpr double kMostMemory = 0.8;

struct Options {
  RunOptions run{.budget_ms = 200};
  CellSelection cells{.operations = {"sum", "max", "argmax"}, .dtypes = {"f32", "f16", "f64", "i32", "i8"}};
  std::string sizes = "701,2621,9801,36655,137091,512717,1917563,7171687,26822109,100314689,375176935,1403161737";
  std::vector<std::string> contexts{"stream", "graph"}, offsets{"0", "1", "7"};
  bool lend = false;
  std::string commit;
  double seconds = 200;
  int rounds = 300;
};

void set_up(CommandLine& command_line, Options& options) {
  command_line.describe("Reductions that nobody tuned, next to CUB");
  add_run_options(command_line, options.run);
  command_line.add("--ops", options.cells.operations, "operations (default: sum, max, argmax)");
  command_line.add("--dtypes", options.cells.dtypes, "dtypes (default: f32, f16, f64, i32, i8)");
  command_line.add("--sizes", options.sizes, "1000,2^20+1,2^8..2^30/2 (default: 12 odd ones from 701 to 1.4e9)");
  command_line.add("--offsets", options.offsets, "elements behind an aligned address, below 32 (default: 0, 1, 7)");
  command_line.add("--contexts", options.contexts, "stream, graph (default: both)", {"stream", "graph"});
  command_line.add_flag("--lend", options.lend,
                        "tune each problem aligned and, as a further contestant, at its offset, for --budget each");
  command_line.add("--seconds,--time", options.seconds, "time for everything; samples adapt to it (default: 200)");
  command_line.add("--rounds", options.rounds, "batches of each, at most (default: 300)");
  command_line.add("--commit", options.commit, "the version of Hone, for the JSON file");
}

/// A folder of its own in the system's place for temporary files.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "untuned_vs_cub-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) throw Error(ErrorCode::io_failed, "cannot make a folder like " + path);
    path_ = path;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  /// Winners come from `winners` first, where that is given; what is chosen here is written to a file of this folder.
  SessionOptions session_options(const std::string& name, const std::string& winners) const {
    SessionOptions options;
    options.on_miss = MissPolicy::heuristic;
    options.cache_path = path_ / (name + ".sqlite");
    if (winners.ends_with(".winners")) options.shipped_winners = {winners};
    else if (!winners.empty()) options.system_caches = {winners};
    return options;
  }

 private:
  std::filesystem::path path_;
};

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<int> parse_offsets(const std::vector<std::string>& texts) {
  std::vector<int> offsets;
  for (const std::string& text : texts) {
    char* end = nullptr;
    const long offset = std::strtol(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || offset < 0 || offset > 31)
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no offset from 0 to 31", text));
    offsets.push_back(static_cast<int>(offset));
  }
  return offsets;
}

std::vector<Cell> cells_of(const Options& options) {
  CellSelection selection = options.cells;
  selection.sizes = parse_sizes(options.sizes);
  selection.offsets = parse_offsets(options.offsets);
  if (options.lend) std::erase(selection.offsets, 0);
  selection.settings.clear();
  for (const LaunchContext context : {LaunchContext::stream, LaunchContext::graph})
    if (has(options.contexts, name(context))) selection.settings.push_back({context});
  return choose_cells(reduce_family(), selection);
}

std::string describe(const Cell& cell) {
  return fmt::format("{} {} n={}", reduce_family().operations()[cell.operation], info(cell.dtype).name, cell.n);
}

/// Removes the cells whose input does not fit, and returns their names.
std::vector<std::string> remove_too_large(const DeviceFacts& facts, std::vector<Cell>& cells) {
  std::vector<std::string> removed;
  std::erase_if(cells, [&](const Cell& cell) {
    const std::size_t bytes = InputArena::bytes_for(cell.dtype, cell.n, input_count(problem_of(cell, 0)));
    if (static_cast<double>(bytes) <= kMostMemory * static_cast<double>(facts.memory_bytes)) return false;
    if (!has(removed, describe(cell))) removed.push_back(describe(cell));
    return true;
  });
  return removed;
}

/// Makes the choices for all cells in parallel, and leaves them in the session's cache file: the session would compile
/// one after the other.
void choose_ahead(const std::shared_ptr<Device>& device, const SessionOptions& options,
                  const std::vector<Cell>& cells) {
  std::vector<Problem> problems;
  for (const Cell& cell : cells) {
    std::vector<std::uint32_t> alignments;  // offsets of one alignment share their winner
    for (const int offset : cell.offsets) {
      const Problem problem = problem_of(cell, offset);
      if (std::find(alignments.begin(), alignments.end(), problem.alignment) != alignments.end()) continue;
      alignments.push_back(problem.alignment);
      problems.push_back(problem);
    }
  }
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      Session session(device, options);
      for (std::size_t at = next++; at < problems.size(); at = next++) try {
          session.prepare(problems[at]);
        } catch (const Error&) {  // the comparison meets the same error
        }
    });
}

/// The ratios to one contestant, a line for each problem; * marks those that are behind.
std::string cell_table(const std::vector<Row>& rows, const std::vector<Cell>& cells, std::string_view peer) {
  using Column = std::pair<LaunchContext, int>;
  std::set<Column> columns;
  for (const Cell& cell : cells)
    for (const int offset : cell.offsets) columns.insert({cell.setting.context, offset});
  std::map<std::string, std::map<Column, double>> lines;
  for (const Row& row : rows) lines[describe(row.cell)][{row.cell.setting.context, row.offset}] = row.ratio_to(peer);

  std::string text = fmt::format("\n{} time / Hone time, by context and offset\n{:<28}", peer, "");
  for (const auto& [context, offset] : columns)
    text += fmt::format("{:>10} ", fmt::format("{} {}", name(context), offset));
  text += "\n";
  std::vector<std::string> printed;
  for (const Cell& cell : cells) {
    const std::string problem = describe(cell);
    if (!lines.contains(problem) || has(printed, problem)) continue;
    printed.push_back(problem);
    text += fmt::format("{:<28}", problem);
    for (const Column& column : columns) {
      const auto found = lines[problem].find(column);
      if (found == lines[problem].end() || std::isnan(found->second)) text += fmt::format("{:>10} ", "-");
      else text += fmt::format("{:>10.2f}{}", found->second, found->second < kBehind ? '*' : ' ');
    }
    text += "\n";
  }
  return text;
}

/// By context: the geometric mean, the worst, and the cells that are behind.
nlohmann::ordered_json summary_of(const std::vector<Row>& rows, std::string_view peer) {
  nlohmann::ordered_json summary;
  for (const LaunchContext context : {LaunchContext::stream, LaunchContext::graph}) {
    std::vector<double> ratios;
    for (const Row& row : rows)
      if (const double ratio = row.ratio_to(peer); row.cell.setting.context == context && !std::isnan(ratio))
        ratios.push_back(ratio);
    if (ratios.empty()) continue;
    summary[std::string(name(context))] = {
        {"geometric_mean", geometric_mean(ratios)},
        {"worst", *std::min_element(ratios.begin(), ratios.end())},
        {"behind", std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio < kBehind; })},
        {"cells", ratios.size()}};
    fmt::print("against {} in a {}: {}\n", peer, name(context), ratio_summary(ratios));
  }
  return summary;
}

/// Tunes the aligned problem of a cell in one session, and that at the cell's offset in the other.
void tune_cell(Session& aligned, Session& own, const Cell& cell, int budget_ms) {
  const TuningOptions tuning{.budget = std::chrono::milliseconds(budget_ms)};
  aligned.tune(problem_of(cell, 0), tuning);
  own.tune(problem_of(cell, cell.offsets.front()), tuning);
}

std::vector<std::unique_ptr<Peer>> make_cub(const std::shared_ptr<Device>& device) {
  std::vector<std::unique_ptr<Peer>> peers = make_peers(device);
  std::erase_if(peers, [](const std::unique_ptr<Peer>& peer) { return peer->name() != "CUB"; });
  return peers;
}

/// Returns whether everyone had the same results.
bool run(const Options& options) {
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const std::shared_ptr<Device> device = Device::open(options.run.device);
  std::vector<Cell> cells = cells_of(options);
  const std::vector<std::string> too_large = remove_too_large(device->facts(), cells);
  const ScratchFolder scratch;
  const SessionOptions session_options = scratch.session_options("untuned", options.run.cache);
  if (!options.lend) choose_ahead(device, session_options, cells);
  const double choosing_seconds = seconds();

  Session session(device, session_options), own(device, scratch.session_options("own", {}));
  Comparison comparison(session, make_cub(device), cells, {.rounds = options.rounds},
                        options.lend ? std::optional(OtherHone{"own", own}) : std::nullopt);
  SweepRun run{.device = device->facts(),
               .budget_ms = options.lend ? options.run.budget_ms : 0,
               .cells = cells.size()};
  for (const auto& peer : comparison.peers()) run.peers.push_back(fmt::format("{} {}", peer->name(), peer->version()));
  run.missing_peers = missing_peers(*device);
  fmt::print("{}\nchosen ahead in {:.1f} s\n", headline(run), choosing_seconds);
  for (const std::string& name : too_large) fmt::print("left out, as memory is too small: {}\n", name);
  std::fflush(stdout);

  std::vector<Row> rows;
  for (const Cell& cell : cells) {
    const double left = options.seconds - seconds();
    if (left <= 0) break;
    if (options.lend) tune_cell(session, own, cell, options.run.budget_ms);
    comparison.set_cell_ms(1000 * left / static_cast<double>(cells.size() - run.measured_cells) -
                           (options.lend ? 2 * options.run.budget_ms : 0));
    for (Row& row : comparison.run(cell)) rows.push_back(std::move(row));
    ++run.measured_cells;
  }
  run.tuning_seconds = choosing_seconds + comparison.tuning_seconds();
  run.total_seconds = seconds();

  nlohmann::ordered_json json = to_json(rows, run);
  json["commit"] = options.commit;
  json["winners_from"] = options.run.cache;
  json["left_out"] = too_large;
  for (const char* peer : {"CUB", "own"}) {
    if (std::all_of(rows.begin(), rows.end(), [&](const Row& row) { return std::isnan(row.ratio_to(peer)); })) continue;
    fmt::print("{}", cell_table(rows, cells, peer));
    json["against"][peer] = summary_of(rows, peer);
  }
  fmt::print("{}", summary_tables(rows, run));
  write_json(options.run.json, json);
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) {
    return std::all_of(row.peers.begin(), row.peers.end(), [](const PeerTiming& peer) { return peer.agrees; });
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return hone::benchmarks::run_program(
      "untuned_vs_cub", argc, argv, [&](CommandLine& command_line) { set_up(command_line, options); },
      [&] { return run(options); });
}
