// The common part of the benchmark programs: their options, their session, and what main() does around them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <hone/session.h>
#include <nlohmann/json_fwd.hpp>

#include "benchmarks/common/command_line.h"
#include "benchmarks/common/interleaved.h"

namespace hone::benchmarks {

/// Where Hone runs and what it may spend, as given on the command line.
struct RunOptions {
  std::string device = "auto", cache = {}, json = {};
  int budget_ms = 500;  ///< of tuning, a problem
};

/// --device, --budget, --cache and --json; defaults are what `options` holds.
void add_run_options(CommandLine& command_line, RunOptions& options);

/// --rounds and --cell-ms; likewise.
void add_timing_options(CommandLine& command_line, TimingOptions& options);

/// The stream or graph that calls are launched in, and the calls around them.
struct SettingOptions {
  std::vector<std::string> contexts{"stream", "graph"}, companies{"itself", "others", "nobody"};

  std::vector<Setting> settings() const;
};

/// --contexts and --company; likewise.
void add_setting_options(CommandLine& command_line, SettingOptions& options);

/// A session that tunes what its cache lacks. Throws Error if there is no such device.
Session make_session(const RunOptions& options);

/// Replaces the file; does nothing if `path` is empty, as of an option that was not given. Throws Error(io_failed).
void write_json(const std::string& path, const nlohmann::ordered_json& json);

/// Reads the command line into what `set_up` adds, then runs. The exit code: 0, or 1 if `run` says false; 2 behind an
/// exception, which goes to stderr under the program's `name`; CommandLine's own where that ends the program.
int run_program(std::string_view name, int argc, char** argv, const std::function<void(CommandLine&)>& set_up,
                const std::function<bool()>& run);

}  // namespace hone::benchmarks
