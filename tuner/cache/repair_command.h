// hone cache repair: saves what is intact in a damaged cache.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct CacheRepairOptions {
  std::string cache;
  bool json = false;
};

void set_up_cache_repair(CLI::App& cache, CacheRepairOptions& options);
ExitCode run_cache_repair(const CacheRepairOptions& options, const Context& context);

}  // namespace hone::tuner
