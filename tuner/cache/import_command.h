// hone cache import: winners out of an export into the cache.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct CacheImportOptions {
  std::string file;  ///< "-": standard input
  std::string cache;
  bool no_binaries = false;
  bool dry_run = false;
  bool json = false;
};

void set_up_cache_import(CLI::App& cache, CacheImportOptions& options);
ExitCode run_cache_import(const CacheImportOptions& options, const Context& context);

}  // namespace hone::tuner
