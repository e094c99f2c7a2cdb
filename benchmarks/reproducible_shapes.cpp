// Rows, columns and softmax with reproducible numerics next to the fast ones, on the same buffers, in one run. Both are
// tuned; ratio is fast time ÷ reproducible time. What has no reproducible kernels is named.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/hone.h>
#include <hone/kernel_family.h>

#include "benchmarks/common/input_arena.h"
#include "benchmarks/common/interleaved.h"
#include "benchmarks/common/program.h"
#include "benchmarks/common/reader.h"
#include "benchmarks/common/report.h"
#include "benchmarks/sweep/cells.h"

namespace {

using namespace hone;
using namespace hone::benchmarks;
using Clock = std::chrono::steady_clock;

struct Options {
  RunOptions run{.budget_ms = 1000};
  std::vector<std::string> kinds{"rows", "columns", "softmax", "log_softmax"}, dtypes{"f32", "f16"};
  std::string op = "sum";
  std::string rows = "2^20x2^6,2^16x2^10,2^13x2^13,2^10x2^16,4x2^24", columns = "2^20x2^6,2^13x2^13,2^10x2^16";
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
  command_line.add("--time", options.seconds, "begin no cell after so many seconds (default: 400)");
  add_timing_options(command_line, options.timing);
}

/// One cell: a shape of one kind and dtype.
struct Cell {
  std::string kind, dtype;
  std::int64_t rows = 0, columns = 0;

  Problem problem(const std::string& op, Numerics numerics) const {
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
        cells.push_back({kind, dtype, rows, columns});
  return cells;
}

struct Row {
  Cell cell;
  std::int64_t bytes = 0;
  std::string policy;
  Timing reproducible, fast;

  double ratio() const { return fast.median_us / reproducible.median_us; }
};

Row measure(Session& session, const InputArena& arena, CacheFlush& flush, const Cell& cell, const Options& options) {
  const std::shared_ptr<Device> device = session.device();
  const OwnStream stream(*device);
  const Problem exact = cell.problem(options.op, Numerics::reproducible), fast = cell.problem(options.op, Numerics::fast);
  Row row;
  row.cell = cell;
  row.bytes = exact.family->bytes_moved(exact);
  row.policy = exact.family->space().to_string(session.prepare(exact).winner->candidate.policy);
  session.prepare(fast);
  const InputLayout layout =
      arena.layout(parse_dtype(cell.dtype), cell.rows * cell.columns, 1, 0, options.timing.most_calls);
  const DeviceBuffer out(device, exact.family->buffers(exact)[1].size_bytes());
  const auto contestant = [&](const char* name, const Problem& problem) {
    return Contestant{name, [&](int turn, Stream on) {
                        void* const buffers[] = {arena.at(layout, turn, 0), out.data()};
                        session.launch(problem, buffers, on);
                      }};
  };
  const Contestant contestants[] = {contestant("reproducible", exact), contestant("fast", fast)};
  const std::function<void(Stream)> make_cold = [&](Stream on) {
    if (flush.is_needed_for(static_cast<std::size_t>(row.bytes))) flush.enqueue(on);
  };
  const std::vector<Timing> timings =
      time_interleaved(*device, stream.get(), LaunchContext::stream, contestants, make_cold, options.timing);
  row.reproducible = timings[0];
  row.fast = timings[1];
  return row;
}

nlohmann::ordered_json to_json(const Row& row) {
  return {{"kind", row.cell.kind},       {"dtype", row.cell.dtype},
          {"rows", row.cell.rows},       {"columns", row.cell.columns},
          {"variant", row.policy},       {"reproducible_us", row.reproducible.median_us},
          {"fast_us", row.fast.median_us}, {"ratio", row.ratio()}};
}

void print_summary(const Options& options, const std::vector<Row>& rows) {
  std::vector<double> all;
  const auto print = [](std::string_view what, const std::vector<double>& ratios) {
    if (ratios.empty()) return;
    fmt::print("{:<12} fast / reproducible: {:.2f} (worst {:.2f} of {})\n", what, geometric_mean(ratios),
               *std::min_element(ratios.begin(), ratios.end()), ratios.size());
  };
  for (const std::string& kind : options.kinds) {
    std::vector<double> ratios;
    for (const Row& row : rows)
      if (row.cell.kind == kind) ratios.push_back(row.ratio());
    print(kind, ratios);
    all.insert(all.end(), ratios.begin(), ratios.end());
  }
  print("all", all);
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
  CacheFlush flush(device);
  fmt::print("{}, {}\n\n{:<12}{:<5}{:>20}{:>17}{:>10}{:>8}  {}\n", device->facts().name, today(), "kind", "of", "shape",
             "reproducible us", "fast us", "ratio", "reproducible policy");

  nlohmann::ordered_json json{
      {"device", device->facts().name}, {"date", today()}, {"op", options.op}, {"rows", nlohmann::ordered_json::array()}};
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
    rows.push_back(measure(session, arena, flush, cell, options));
    const Row& row = rows.back();
    fmt::print("{:<12}{:<5}{:>20}{:>17.2f}{:>10.2f}{:>8.2f}  {}\n", cell.kind, cell.dtype,
               fmt::format("{} x {}", cell.rows, cell.columns), row.reproducible.median_us, row.fast.median_us,
               row.ratio(), row.policy);
    std::fflush(stdout);
    json["rows"].push_back(to_json(row));
    write_json(options.run.json, json);
  }
  fmt::print("\n");
  print_summary(options, rows);
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
