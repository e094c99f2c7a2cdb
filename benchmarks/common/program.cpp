#include "benchmarks/common/program.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/error.h>

namespace hone::benchmarks {

void add_run_options(CommandLine& command_line, RunOptions& options) {
  command_line.add("--device", options.device, "auto, cuda:0, … or host");
  command_line.add("--budget", options.budget_ms,
                   fmt::format("Hone's tuning time a problem, in ms (default: {})", options.budget_ms));
  command_line.add("--cache", options.cache, "cache file: winners in it are used, new ones stored (default: none)");
  command_line.add("--json", options.json, "write the figures to this file");
}

void add_timing_options(CommandLine& command_line, TimingOptions& options) {
  command_line.add("--rounds", options.rounds, fmt::format("batches of each, at most (default: {})", options.rounds));
  command_line.add(
      "--cell-ms", options.cap_ms,
      fmt::format("time for all that are measured side by side, in ms, once each has {} batches (default: {})",
                  options.least_rounds, options.cap_ms));
}

void add_setting_options(CommandLine& command_line, SettingOptions& options) {
  command_line.add("--contexts", options.contexts, "stream, graph (default: both)", {"stream", "graph"});
  command_line.add("--company", options.companies,
                   "what calls run among: itself (back to back), others (kernels between), nobody (default: all)",
                   {"itself", "others", "nobody"});
}

std::vector<Setting> SettingOptions::settings() const {
  const auto has = [](const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<Setting> settings;
  for (const LaunchContext context : {LaunchContext::stream, LaunchContext::graph})
    for (const Company company : {Company::itself, Company::others, Company::nobody})
      if (has(contexts, name(context)) && has(companies, name(company))) settings.push_back({context, company});
  return settings;
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

int run_program(std::string_view name, int argc, char** argv, const std::function<void(CommandLine&)>& set_up,
                const std::function<bool()>& run) {
  CommandLine command_line;
  set_up(command_line);
  if (const std::optional<int> exit_code = command_line.parse(argc, argv)) return *exit_code;
  try {
    return run() ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 2;
  }
}

}  // namespace hone::benchmarks
