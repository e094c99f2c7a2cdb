// hone inspect: what is in the cache, and why.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

/// The options as typed; run_inspect() gives them their meaning.
struct InspectOptions {
  std::string id;
  std::string device;
  std::string family;
  std::string ops;
  std::string dtypes;
  std::string size;
  std::string context;
  std::string numerics;
  std::string cache;
  bool all = false;
  bool json = false;
};

void set_up_inspect(CLI::App& app, InspectOptions& options);
ExitCode run_inspect(const InspectOptions& options, const Context& context);

}  // namespace hone::tuner
