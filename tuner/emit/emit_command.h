// hone emit: write a winner as plain CUDA C++, for programs that do not link Hone.
#pragma once

#include <optional>
#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

/// The options as typed; run_emit() gives them their meaning.
struct EmitOptions {
  std::string family = "reduce";  ///< or a kernel file
  std::optional<std::string> op;
  std::optional<std::string> dtype;
  std::optional<std::string> size;
  std::string alignment = "16";
  std::string context = "stream";
  std::string nan = "propagate";
  std::string numerics = "fast";
  std::string objective = "time";
  std::string device;
  std::string cache;
  std::string output = "-";
};

void set_up_emit(CLI::App& app, EmitOptions& options);
ExitCode run_emit(const EmitOptions& options, const Context& context);

}  // namespace hone::tuner
