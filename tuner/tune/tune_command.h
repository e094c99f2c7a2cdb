// hone tune: fill the cache with winners ahead of time.
#pragma once

#include <optional>
#include <string>

#include "tuner/campaign/problem_options.h"
#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

/// The options as typed; run_tune() gives them their meaning.
struct TuneOptions {
  ProblemOptions problems = {};
  bool missed = false;
  std::string shard;
  std::string device = "auto";
  std::optional<std::string> budget;
  std::optional<std::string> total_budget;
  std::string regret = "1";
  std::string patience = "20s";
  std::optional<std::string> objective;
  std::string cache;
  bool again = false;
  bool exhaustive = false;
  bool warm = false;
  bool quiet = false;
  bool json = false;
};

void set_up_tune(CLI::App& app, TuneOptions& options);
ExitCode run_tune(const TuneOptions& options, const Context& context);

}  // namespace hone::tuner
