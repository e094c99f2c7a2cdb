// hone cache stats: the cache file in numbers.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct CacheStatsOptions {
  std::string cache;
  bool json = false;
};

void set_up_cache_stats(CLI::App& cache, CacheStatsOptions& options);
ExitCode run_cache_stats(const CacheStatsOptions& options, const Context& context);

}  // namespace hone::tuner
