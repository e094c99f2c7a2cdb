// hone cache verify: checks every row and binary.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct CacheVerifyOptions {
  std::string cache;
  bool json = false;
};

void set_up_cache_verify(CLI::App& cache, CacheVerifyOptions& options);
ExitCode run_cache_verify(const CacheVerifyOptions& options, const Context& context);

}  // namespace hone::tuner
