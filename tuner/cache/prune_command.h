// hone cache prune: removes what is no longer worth its place.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct CachePruneOptions {
  std::string cache;
  std::string device;
  std::string older_than;
  std::string max_size;
  std::string limit;
  bool stale = false;
  bool dry_run = false;
  bool json = false;
};

void set_up_cache_prune(CLI::App& cache, CachePruneOptions& options);
ExitCode run_cache_prune(const CachePruneOptions& options, const Context& context);

}  // namespace hone::tuner
