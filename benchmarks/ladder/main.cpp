// The ladder: what each step of a reduction tutorial buys, as one table. Ends with 1 if a step's sum is wrong.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/hone.h>

#include "benchmarks/common/report.h"
#include "benchmarks/ladder/run.h"
#include "benchmarks/ladder/steps.h"
#include "benchmarks/sweep/cells.h"

namespace {

using namespace hone;
using namespace hone::benchmarks;

struct Options {
  std::string device = "auto", sizes = "2^14,2^18,2^22,2^28", context = "stream", cache, json;
  int budget_ms = 500;
  TimingOptions timing{.cap_ms = 300};
};

void set_up(CLI::App& app, Options& options) {
  app.description("Sums of floats, from a tree in global memory to Hone, a step at a time");
  app.add_option("--device", options.device, "auto, cuda:0, … or host");
  app.add_option("--sizes", options.sizes, "1000,2^20+1,2^8..2^30/2 (default: 2^14,2^18,2^22,2^28)");
  app.add_option("--context", options.context, "stream (default) or graph")->check(CLI::IsMember({"stream", "graph"}));
  app.add_option("--budget", options.budget_ms, "Hone's tuning time a size, in ms (default: 500)")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.timing.rounds, "batches of each step, at most (default: 20)")->check(CLI::PositiveNumber);
  app.add_option("--cell-ms", options.timing.cap_ms, "time a size, in ms, once it has five batches of each (default: 300)");
  app.add_option("--cache", options.cache, "cache file (default: none)");
  app.add_option("--json", options.json, "write the figures to this file");
}

nlohmann::ordered_json to_json(const LadderRow& row, const ReadCeiling& ceiling) {
  const double found = gbps(static_cast<double>(row.n) * sizeof(float), row.timing.median_us);
  return {{"step", row.step},        {"n", row.n},
          {"launches", row.launches}, {"us", row.timing.median_us},
          {"spread_us", row.timing.spread_us}, {"gbps", found},
          {"percent_of_ceiling", 100 * found / ceiling.gbps}, {"is_right", row.is_right}};
}

bool run(const Options& options) {
  const std::vector<std::int64_t> sizes = parse_sizes(options.sizes);
  for (std::int64_t n : sizes)
    if (n > kMostLadderElements)
      throw Error(ErrorCode::invalid_argument, fmt::format("the ladder counts in 32 bits: {} elements are too many", n));
  SessionOptions session_options;
  session_options.tune_budget = std::chrono::milliseconds(options.budget_ms);
  session_options.cache_path = options.cache;
  Session session(Device::open(options.device), session_options);
  const std::shared_ptr<Device>& device = session.device();

  std::size_t bytes = 8 * static_cast<std::size_t>(device->facts().l2_bytes);
  for (std::int64_t n : sizes) bytes = std::max(bytes, InputArena::bytes_for(DType::f32, n, 1));
  InputArena arena(device, bytes);
  const CacheFlush flush(device);
  arena.fill(DType::f32, nullptr);
  const ReadCeiling ceiling = measure_read_ceiling(device, arena.data(), arena.size_bytes(), nullptr);
  fmt::print("{}, sum of f32 in a {}, {}\nread ceiling {:.0f} GB/s ({})\n\n", device->facts().name, options.context, today(),
             ceiling.gbps, ceiling.kernel);

  std::vector<LadderRow> rows;
  for (std::int64_t n : sizes) {
    const LaunchContext context = options.context == "graph" ? LaunchContext::graph : LaunchContext::stream;
    for (LadderRow& row : run_ladder(session, arena, flush, n, context, options.timing)) rows.push_back(std::move(row));
  }
  fmt::print("{}", ladder_table(rows, ceiling));

  nlohmann::ordered_json json{{"device", device->facts().name}, {"date", today()}, {"context", options.context},
                              {"read_ceiling_gbps", ceiling.gbps}, {"read_ceiling_kernel", ceiling.kernel}};
  bool is_right = true;
  for (const LadderRow& row : rows) {
    json["rows"].push_back(to_json(row, ceiling));
    if (row.is_right) continue;
    is_right = false;
    fmt::print("WRONG: {} of {} floats gave {:g} instead of {:g}\n", row.step, row.n, row.found, row.expected);
  }
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << json.dump(1) << '\n';
    if (!file.flush()) throw Error(ErrorCode::io_failed, "cannot write " + options.json);
  }
  return is_right;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app;
  Options options;
  set_up(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options) ? 0 : 1;
  } catch (const hone::Error& error) {
    fmt::print(stderr, "ladder: {}\n", error.what());
    return 2;
  }
}
