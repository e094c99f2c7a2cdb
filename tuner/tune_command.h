// hone tune: fill the cache with winners ahead of time.
#pragma once

#include <string>

#include "tuner/command.h"
#include "tuner/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

/// The options as typed; run_tune() gives them their meaning.
struct TuneOptions {
  std::string family = "reduce";
  std::string ops = "sum";
  std::string dtypes = "f32";
  std::string sizes = "2^10..2^24";
  std::string alignments = "16";
  std::string context = "stream";
  std::string device = "auto";
  std::string budget = "2s";
  std::string total_budget;
  std::string cache;
  bool again = false;
  bool exhaustive = false;
  bool warm = false;
  bool quiet = false;
};

void set_up_tune(CLI::App& app, TuneOptions& options);
ExitCode run_tune(const TuneOptions& options, const Context& context);

}  // namespace hone::tuner
