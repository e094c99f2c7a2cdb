// hone inspect: what is in the cache, and why.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"
#include "tuner/winners/winner_filter.h"

namespace CLI {
class App;
}

namespace hone::tuner {

/// The options as typed; run_inspect() gives them their meaning.
struct InspectOptions {
  FilterOptions filter;
  std::string cache;
  bool all = false;
  bool loans = false;
  bool json = false;
};

void set_up_inspect(CLI::App& app, InspectOptions& options);
ExitCode run_inspect(const InspectOptions& options, const Context& context);

}  // namespace hone::tuner
