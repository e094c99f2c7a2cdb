// Rows, columns and softmax with reproducible numerics next to the fast ones, on the same buffers, in one run. Both are
// tuned; ratio is fast time ÷ reproducible time. What has no reproducible kernels is named.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/hone.h>
#include <hone/kernel_family.h>

#include "benchmarks/common/ceilings.h"
#include "benchmarks/common/figures.h"
#include "benchmarks/common/input_arena.h"
#include "benchmarks/common/prepared_call.h"
#include "benchmarks/common/program.h"
#include "benchmarks/common/race_track.h"
#include "benchmarks/common/report.h"
#include "benchmarks/sweep/cells.h"
#include "benchmarks/sweep/summary.h"

namespace {

using namespace hone;
using namespace hone::benchmarks;
using Clock = std::chrono::steady_clock;

struct Options {
  RunOptions run{.budget_ms = 1000};
  std::vector<std::string> kinds{"rows", "columns", "softmax", "log_softmax"}, dtypes{"f32", "f16"};
  std::string op = "sum";
  std::string rows = "2^20x2^6,2^16x2^10,2^13x2^13,2^10x2^16,4x2^24", columns = "2^20x2^6,2^13x2^13,2^10x2^16";
  SettingOptions settings;
  double seconds = 400;
  TimingOptions timing{.cap_ms = 60};
};

void set_up(CommandLine& command_line, Options& options) {
  command_line.describe("Rows, columns and softmax with reproducible and with fast numerics, side by side");
  add_run_options(command_line, options.run);
  command_line.add("--kinds", options.kinds, "rows, columns, softmax, log_softmax (default: all)",
                   {"rows", "columns", "softmax", "log_softmax"});
  command_line.add("--dtypes", options.dtypes, "dtypes (default: f32, f16)");
  command_line.add("--op", options.op, "the operation of rows and columns (default: sum)");
  command_line.add("--shapes", options.rows, "of rows and softmax: 1024x64,2^20+1x8 (default: five)");
  command_line.add("--column-shapes", options.columns, "of columns (default: three)");
  add_setting_options(command_line, options.settings);
  command_line.add("--time", options.seconds, "begin no cell after so many seconds (default: 400)");
  add_timing_options(command_line, options.timing);
}

/// One cell: a shape of one kind and dtype in one setting.
struct Cell {
  std::string kind, dtype;
  std::int64_t rows = 0, columns = 0;
  Setting setting = {};

  Problem problem(const std::string& op, Numerics numerics) const {
    Problem problem = in_stream(op, numerics);
    problem.launch_context = setting.context;
    return problem;
  }

  bool copies() const { return kind.ends_with("softmax"); }

  std::string describe() const {
    return fmt::format("{:<12}{:<5}{:>20} {:<15}", kind, dtype, fmt::format("{} x {}", rows, columns), name(setting));
  }

 private:
  Problem in_stream(const std::string& op, Numerics numerics) const {
    const DType of = parse_dtype(dtype);
    const ReduceSpec reduce{.op = parse_reduce_op(op), .dtype = of, .numerics = numerics};
    const SoftmaxSpec softmax{.dtype = of, .numerics = numerics};
    if (kind == "rows") return reduce_rows_problem(reduce, {.rows = rows, .columns = columns});
    if (kind == "columns") return reduce_columns_problem(reduce, {.reduced = rows, .inner = columns});
    const SoftmaxShape shape = SoftmaxShape::rows(rows, columns);
    return kind == "softmax" ? softmax_problem(softmax, shape) : log_softmax_problem(softmax, shape);
  }
};

std::vector<Cell> cells_of(const Options& options) {
  std::vector<Cell> cells;
  for (const std::string& kind : options.kinds)
    for (const std::string& dtype : options.dtypes)
      for (const auto& [rows, columns] : parse_shapes(kind == "columns" ? options.columns : options.rows))
        for (const Setting& setting : options.settings.settings())
          cells.push_back({kind, dtype, rows, columns, setting});
  return cells;
}

struct Row {
  Cell cell;
  std::int64_t bytes = 0;
  std::string policy;
  Timing reproducible = {}, fast = {};
  PlainTiming plain = {};  ///< a read of as many bytes; of softmax a copy

  double ratio() const { return fast.median_us / reproducible.median_us; }
  std::vector<PeerTiming> peers() const { return {{"fast", fast}}; }
  double percent_of_ceiling() const { return ceiling_of(plain, reproducible, peers()).percent(reproducible); }
};

Row measure(Session& session, const InputArena& arena, const RaceTrack& track, Ceilings& ceilings, const Cell& cell,
            const Options& options) {
  const std::shared_ptr<Device> device = session.device();
  const OwnStream stream(*device);
  PreparedCall exact(session, cell.problem(options.op, Numerics::reproducible));
  PreparedCall fast(session, cell.problem(options.op, Numerics::fast));
  const Problem& problem = exact.problem();
  Row row{.cell = cell, .bytes = problem.family->bytes_moved(problem), .policy = exact.policy()};
  const InputLayout layout =
      arena.layout(parse_dtype(cell.dtype), cell.rows * cell.columns, 1, 0, options.timing.most_calls);
  const DeviceBuffer out(device, problem.family->buffers(problem)[1].size_bytes());
  const auto contestant = [&](const char* name, PreparedCall& call) {
    return Contestant{name, [&](int turn, Stream on) {
                        void* const buffers[] = {arena.at(layout, turn, 0), out.data()};
                        call.enqueue(buffers, on);
                      }};
  };
  const std::vector<const void*> inputs = arena.inputs(layout);
  const PlainMove& plain = cell.copies()
                               ? ceilings.fastest(inputs, out.data(), out.size_bytes())
                               : ceilings.fastest(inputs, nullptr, arena.readable_bytes(layout, row.bytes));
  const Contestant contestants[] = {contestant("reproducible", exact), contestant("fast", fast),
                                    {plain.name, [&](int turn, Stream on) {
                                       plain.enqueue(arena.at(layout, turn, 0), out.data(), on);
                                     }}};
  const std::vector<Timing> timings =
      track.time(stream.get(), cell.setting, contestants, static_cast<std::size_t>(row.bytes), options.timing);
  row.reproducible = timings[0];
  row.fast = timings[1];
  row.plain = {plain.name, timings[2]};
  return row;
}

nlohmann::ordered_json to_json(const Row& row) {
  nlohmann::ordered_json json{{"kind", row.cell.kind},
                              {"dtype", row.cell.dtype},
                              {"rows", row.cell.rows},
                              {"columns", row.cell.columns},
                              {"variant", row.policy}};
  add_timings(json, row.cell.setting, row.reproducible, row.peers());
  add_ceiling(json, row.plain, row.reproducible, row.peers());
  return json;
}

void print_summary(const std::vector<Row>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> groups;
  for (const Row& row : rows)
    for (const std::string& kind : {row.cell.kind, std::string("all")})
      groups[{kind, name(row.cell.setting)}].push_back(row.ratio());
  for (const auto& [group, ratios] : groups)
    fmt::print("{:<12}{:<15} fast / reproducible: {}\n", group.first, group.second, ratio_summary(ratios));
}

bool run(const Options& options) {
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Session session = make_session(options.run);
  const std::shared_ptr<Device> device = session.device();
  const std::vector<Cell> cells = cells_of(options);
  std::size_t arena_bytes = 8 * cache_bytes(device->facts());
  for (const Cell& cell : cells)
    arena_bytes = std::max(arena_bytes, InputArena::bytes_for(parse_dtype(cell.dtype), cell.rows * cell.columns, 1));
  InputArena arena(device, arena_bytes);
  const RaceTrack track(device);
  Ceilings ceilings(device, track);
  fmt::print("{}, {}\n\n{:<12}{:<5}{:>20} {:<15}{:>17}{:>10}{:>8}{:>8}  {}\n", device->facts().name, today(), "kind",
             "of", "shape", "in", "reproducible us", "fast us", "ratio", "% ceil", "reproducible policy");

  nlohmann::ordered_json json = run_json(device->facts(), options.run.budget_ms,
                                         {"kind", "dtype", "rows", "columns", "context", "company"});
  json["op"] = options.op;
  std::vector<Row> rows;
  std::string filled;
  for (const Cell& cell : cells) {
    if (seconds() > options.seconds) break;
    if (const std::string refusal = refusal_of(cell.problem(options.op, Numerics::reproducible)); !refusal.empty()) {
      fmt::print("{:<12}{:<5}{}\n", cell.kind, cell.dtype, refusal);
      continue;
    }
    if (filled != cell.dtype) arena.fill(parse_dtype(cell.dtype), nullptr);
    filled = cell.dtype;
    rows.push_back(measure(session, arena, track, ceilings, cell, options));
    const Row& row = rows.back();
    fmt::print("{}{:>17.2f}{:>10.2f}{:>8.2f}{:>8.1f}  {}\n", cell.describe(), row.reproducible.median_us,
               row.fast.median_us, row.ratio(), row.percent_of_ceiling(), row.policy);
    std::fflush(stdout);
    json["rows"].push_back(to_json(row));
    write_json(options.run.json, json);
  }
  fmt::print("\n");
  print_summary(rows);
  fmt::print("{} of {} cells in {:.0f} s, tuning included\n", rows.size(), cells.size(), seconds());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return hone::benchmarks::run_program(
      "reproducible_shapes", argc, argv, [&](CommandLine& command_line) { set_up(command_line, options); },
      [&] { return run(options); });
}
