// hone reduce: reduce the array in a file through tuned_reduce().
#pragma once

#include <string>

#include "tuner/command.h"
#include "tuner/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

/// The options as typed; run_reduce() gives them their meaning.
struct ReduceOptions {
  std::string file;
  std::string dtype;
  std::string ops = "sum";
  std::string nan = "propagate";
  std::string accumulator;
  std::string result;
  std::string shape;
  std::string axis;
  std::string output;
  std::string device = "auto";
  std::string cache;
  std::string on_miss;
  std::string budget;
  bool json = false;
};

void set_up_reduce(CLI::App& app, ReduceOptions& options);
ExitCode run_reduce(const ReduceOptions& options, const Context& context);

}  // namespace hone::tuner
