// hone cache list: what is in the cache, by device, toolchain and family.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct CacheListOptions {
  std::string cache;
  std::string device;
  bool json = false;
};

void set_up_cache_list(CLI::App& cache, CacheListOptions& options);
ExitCode run_cache_list(const CacheListOptions& options, const Context& context);

}  // namespace hone::tuner
