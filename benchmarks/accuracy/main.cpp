// Prints how accurate Hone's sums are, next to CUB's; ends with 1 if a float's error is beyond its bound or an
// integer's sum is not exact.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/hone.h>

#include "benchmarks/accuracy/accuracy.h"
#include "benchmarks/common/report.h"

int main(int argc, char** argv) {
  using namespace hone;
  std::string device_name = "auto", cache, json_path;
  std::int64_t n = std::int64_t{1} << 30;
  int budget_ms = 500;
  CLI::App app("Error of sums of up to 2^30 numbers, its bound, and CUB's error");
  app.add_option("--device", device_name, "auto, cuda:0, … or host");
  app.add_option("-n", n, "elements (default: 2^30)")->check(CLI::Range(std::int64_t{4}, std::int64_t{1} << 30));
  app.add_option("--budget", budget_ms, "tuning time a problem, in ms (default: 500)")->check(CLI::PositiveNumber);
  app.add_option("--cache", cache, "cache file (default: none)");
  app.add_option("--json", json_path, "write the figures to this file");
  CLI11_PARSE(app, argc, argv);
  try {
    SessionOptions options;
    options.tune_budget = std::chrono::milliseconds(budget_ms);
    options.cache_path = cache;
    Session session(Device::open(device_name), options);
    const DeviceBuffer memory(session.device(), static_cast<std::size_t>(n) * sizeof(float));
    const auto peers = benchmarks::make_peers(session.device());
    const auto rows = benchmarks::measure_accuracy(session, peers, memory.data(), memory.size_bytes());
    fmt::print("{}, {} {}\n{}", session.device()->facts().name, benchmarks::today(),
               benchmarks::missing_peers(*session.device()), benchmarks::accuracy_table(rows));
    if (!json_path.empty()) {
      std::ofstream file(json_path);
      file << nlohmann::ordered_json{{"device", session.device()->facts().name},
                                     {"date", benchmarks::today()},
                                     {"rows", benchmarks::to_json(rows)}}
                  .dump(1)
           << '\n';
      if (!file.flush()) throw Error(ErrorCode::io_failed, "cannot write " + json_path);
    }
    const bool is_good = std::all_of(rows.begin(), rows.end(), [](const benchmarks::AccuracyRow& row) {
      return row.by != "Hone" || benchmarks::is_accurate(row);
    });
    return is_good ? 0 : 1;
  } catch (const Error& error) {
    fmt::print(stderr, "accuracy: {}\n", error.what());
    return 2;
  }
}
