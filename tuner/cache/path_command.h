// hone cache path: which cache file is in use.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct CachePathOptions {
  std::string cache;
  bool json = false;
};

void set_up_cache_path(CLI::App& cache, CachePathOptions& options);
ExitCode run_cache_path(const CachePathOptions& options, const Context& context);

}  // namespace hone::tuner
