// hone stats: the counters of running programs' sessions.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct StatsOptions {
  std::string process;  ///< "": all
  std::string folder;
  bool json = false;
};

void set_up_stats(CLI::App& app, StatsOptions& options);
ExitCode run_stats(const StatsOptions& options, const Context& context);

}  // namespace hone::tuner
