// hone cache export: the winners as JSON Lines.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct CacheExportOptions {
  std::string file;  ///< "" or "-": standard output
  std::string cache;
  std::string device;
  bool no_binaries = false;
  bool text = false;  ///< shipped winners instead of JSON Lines
};

void set_up_cache_export(CLI::App& cache, CacheExportOptions& options);
ExitCode run_cache_export(const CacheExportOptions& options, const Context& context);

}  // namespace hone::tuner
