// Context: what every subcommand works with.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <stop_token>
#include <string>
#include <vector>

#include <hone/session.h>

#include "tuner/context/staleness.h"

namespace hone::tuner {

/// The command sees this of the world outside its arguments. The defaults are those of a pipe in a real process.
struct Environment {
  /// Read once, and only by the subcommands that need it.
  std::function<SessionOptions()> session_options = &SessionOptions::from_environment;

  std::function<std::chrono::steady_clock::time_point()> now = &std::chrono::steady_clock::now;

  /// Seconds since 1970, UTC.
  std::function<std::int64_t()> unix_time = [] {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  };

  /// Columns of the terminal that standard output or standard error goes to; 0 when it is none.
  std::function<int()> out_columns = [] { return 0; };
  std::function<int()> err_columns = [] { return 0; };

  /// True if terminals may be written to in color where --color does not say.
  bool may_color = false;

  /// `-` as a file stands for this.
  std::istream* in = &std::cin;

  /// The devices of this machine would store winners under these today.
  std::function<std::vector<CurrentToolchain>()> toolchains = &current_toolchains;

  /// The hone command itself, to be run as the worker processes of a campaign (see tuner/campaign/worker.h), and as the
  /// compilers of those.
  std::string worker_program = {};

  /// Starts to watch for Ctrl-C and returns the token that it stops. Called before the device is opened, only by
  /// subcommands that end early in good order.
  std::function<std::stop_token()> watch_interrupts = [] { return std::stop_token{}; };
};

/// Every subcommand works with this.
struct Context {
  std::ostream& out;
  std::ostream& err;
  const Environment& environment;
};

}  // namespace hone::tuner
