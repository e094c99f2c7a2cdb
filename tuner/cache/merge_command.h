// hone cache merge: the winners of other cache files into the cache.
#pragma once

#include <string>
#include <vector>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct CacheMergeOptions {
  std::vector<std::string> files;
  std::string cache;
  bool no_binaries = false;
  bool dry_run = false;
  bool json = false;
};

void set_up_cache_merge(CLI::App& cache, CacheMergeOptions& options);
ExitCode run_cache_merge(const CacheMergeOptions& options, const Context& context);

}  // namespace hone::tuner
