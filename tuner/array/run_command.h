// hone run: call the kernel of a kernel file on arrays in files.
#pragma once

#include <string>
#include <vector>

#include "tuner/array/array_command.h"

namespace CLI {
class App;
}

namespace hone::tuner {

/// The options as typed; run_run() gives them their meaning.
struct RunOptions {
  std::vector<std::string> files;  ///< the kernel file, then its inputs
  std::vector<std::string> outputs;
  std::vector<std::string> settings;  ///< "a=2.5"
  std::string size;
  ArrayOptions array;  ///< device, cache, on_miss, budget and time
};

void set_up_run(CLI::App& app, RunOptions& options);
ExitCode run_run(const RunOptions& options, const Context& context);

}  // namespace hone::tuner
