// hone devices: the devices of this machine and the facts that matter for tuning.
#pragma once

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct DevicesOptions {
  bool known = false;
  bool json = false;
};

void set_up_devices(CLI::App& app, DevicesOptions& options);
ExitCode run_devices(const DevicesOptions& options, const Context& context);

}  // namespace hone::tuner
