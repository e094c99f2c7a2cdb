#include "benchmarks/common/program.h"

#include <chrono>
#include <exception>
#include <fstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/error.h>

namespace hone::benchmarks {

void add_run_options(CLI::App& app, RunOptions& options) {
  app.add_option("--device", options.device, "auto, cuda:0, … or host");
  app.add_option("--budget", options.budget_ms,
                 fmt::format("Hone's tuning time a problem, in ms (default: {})", options.budget_ms))
      ->check(CLI::PositiveNumber);
  app.add_option("--cache", options.cache, "cache file: winners in it are used, new ones stored (default: none)");
  app.add_option("--json", options.json, "write the figures to this file");
}

void add_timing_options(CLI::App& app, TimingOptions& options) {
  app.add_option("--rounds", options.rounds, fmt::format("batches of each, at most (default: {})", options.rounds))
      ->check(CLI::PositiveNumber);
  app.add_option(
      "--cell-ms", options.cap_ms,
      fmt::format("time for all that are measured side by side, in ms, once each has {} batches (default: {})",
                  options.least_rounds, options.cap_ms));
}

Session make_session(const RunOptions& options) {
  SessionOptions session;
  session.on_miss = MissPolicy::tune;
  session.tune_budget = std::chrono::milliseconds(options.budget_ms);
  session.cache_path = options.cache;
  return Session(Device::open(options.device), session);
}

void write_json(const std::string& path, const nlohmann::ordered_json& json) {
  if (path.empty()) return;
  std::ofstream file(path);
  file << json.dump(1) << '\n';
  if (!file.flush()) throw Error(ErrorCode::io_failed, "cannot write " + path);
}

int run_program(std::string_view name, int argc, char** argv, const std::function<void(CLI::App&)>& set_up,
                const std::function<bool()>& run) {
  CLI::App app;
  set_up(app);
  CLI11_PARSE(app, argc, argv);
  try {
    return run() ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 2;
  }
}

}  // namespace hone::benchmarks
