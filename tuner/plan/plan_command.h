// hone plan: the candidates of problems on a GPU that need not be present, and a cache file of predicted winners.
#pragma once

#include <string>

#include "tuner/campaign/problem_options.h"
#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

/// The options as typed; run_plan() gives them their meaning.
struct PlanOptions {
  ProblemOptions problems = {};
  std::string gpu;
  std::string policies;
  std::string output;
  bool json = false;
};

void set_up_plan(CLI::App& app, PlanOptions& options);
ExitCode run_plan(const PlanOptions& options, const Context& context);

}  // namespace hone::tuner
