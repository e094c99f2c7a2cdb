// hone transfer: winners for a GPU, predicted from the trials of another one.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

/// The options as typed; run_transfer() gives them their meaning.
struct TransferOptions {
  std::string from;
  std::string gpu;
  std::string cache;
  std::string judge;
  bool quiet = false;
  bool json = false;
};

void set_up_transfer(CLI::App& app, TransferOptions& options);
ExitCode run_transfer(const TransferOptions& options, const Context& context);

}  // namespace hone::tuner
