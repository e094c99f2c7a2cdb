// run_command(): the hone command as a function, so that tests drive it in-process.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "tuner/context/context.h"

namespace hone::tuner {

/// Runs the hone command; `args` are without the program's name. Results go to `out`; progress, warnings and errors
/// ("hone: …") to `err`. Never throws; returns the exit code (see ExitCode and `hone --help`).
int run_command(std::span<const std::string> args, std::ostream& out, std::ostream& err,
                const Environment& environment);

}  // namespace hone::tuner
