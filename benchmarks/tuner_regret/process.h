// run_process(): another program, what it prints, and an interrupt on the way.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace hone::benchmarks {

struct Output {
  int exit_code = -1;  ///< 128 + the signal that ended it
  std::string text;    ///< standard output and standard error, as they came
};

/// Runs a command to its end: the program, looked for in PATH, and its arguments. Sends it SIGINT when it still runs
/// after `interrupt_after`. Throws Error(io_failed) when it cannot be run.
Output run_process(std::vector<std::string> command,
                   std::optional<std::chrono::milliseconds> interrupt_after = std::nullopt);

}  // namespace hone::benchmarks
