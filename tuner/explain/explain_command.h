// hone explain: why a problem has the winner that it has, from the stored trials.
#pragma once

#include <optional>
#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct ExplainOptions {
  std::string id;
  std::string family = "reduce";
  std::optional<std::string> op;
  std::optional<std::string> dtype;
  std::string size;
  std::string alignment = "16";
  std::string context = "stream";
  std::string nan = "propagate";
  std::string numerics = "fast";
  std::string objective = "time";
  std::string device;
  std::string cache;
  bool all = false;
  bool counters = false;
  std::string format = "table";
  bool json = false;
};

void set_up_explain(CLI::App& app, ExplainOptions& options);
ExitCode run_explain(const ExplainOptions& options, const Context& context);

}  // namespace hone::tuner
