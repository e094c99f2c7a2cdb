// hone cache snapshot: a read-only cache file to ship.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct CacheSnapshotOptions {
  std::string file;
  std::string cache;
  bool no_trials = false;
  bool no_binaries = false;
  bool json = false;
};

void set_up_cache_snapshot(CLI::App& cache, CacheSnapshotOptions& options);
ExitCode run_cache_snapshot(const CacheSnapshotOptions& options, const Context& context);

}  // namespace hone::tuner
