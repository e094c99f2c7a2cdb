// hone check: what a compiler for GPUs makes of a kernel, and what the host device's checks find in it.
#pragma once

#include <string>
#include <vector>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

/// The options as typed; run_check() gives them their meaning.
struct CheckOptions {
  std::string file;
  std::string entry;
  std::string architecture = "sm_90";
  std::string grid = "1";
  std::string block;
  std::string smem = "0";
  std::vector<std::string> arguments;
  std::vector<std::string> orders;
  bool json = false;
  std::string size;
  std::string deadline = "10s";
};

void set_up_check(CLI::App& app, CheckOptions& options);
ExitCode run_check(const CheckOptions& options, const Context& context);

}  // namespace hone::tuner
