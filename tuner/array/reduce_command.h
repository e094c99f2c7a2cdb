// hone reduce: reduce the array in a file through tuned_reduce().
#pragma once

#include <string>

#include "tuner/array/array_command.h"

namespace hone::tuner {

/// The options as typed; run_reduce() gives them their meaning.
struct ReduceOptions {
  ArrayOptions array;
  std::string ops = "sum";
  std::string nan = "propagate";
  std::string numerics = "fast";
  std::string accumulator;
  std::string result;
};

void set_up_reduce(CLI::App& app, ReduceOptions& options);
ExitCode run_reduce(const ReduceOptions& options, const Context& context);

}  // namespace hone::tuner
