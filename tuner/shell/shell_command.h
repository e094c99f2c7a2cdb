// hone shell: completions for shells, and manual pages, made from the commands and their help texts.
#pragma once

#include <string>
#include <vector>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct ShellOptions {
  std::string what;                  ///< "bash", "zsh", "fish" or "man"
  std::vector<std::string> command;  ///< of "man": whose page, like {"cache", "list"}
};

void set_up_shell(CLI::App& app, ShellOptions& options);

/// `hone` is the whole command line, whose commands and options are completed.
ExitCode run_shell(const ShellOptions& options, const CLI::App& hone, const Context& context);

}  // namespace hone::tuner
