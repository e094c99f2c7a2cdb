// hone softmax: the softmax of the array in a file, along one axis.
#pragma once

#include <string>

#include "tuner/array/array_command.h"

namespace hone::tuner {

/// The options as typed; run_softmax() gives them their meaning.
struct SoftmaxOptions {
  ArrayOptions array;
  std::string scale = "1";
  std::string result;
  std::string numerics = "fast";
  bool log = false;
};

void set_up_softmax(CLI::App& app, SoftmaxOptions& options);
ExitCode run_softmax(const SoftmaxOptions& options, const Context& context);

}  // namespace hone::tuner
