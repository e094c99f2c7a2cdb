// ExitCode and CommandError: how the hone command ends.
#pragma once

#include <stdexcept>
#include <string>

namespace hone::tuner {

/// Exit codes of the command. Stable: scripts depend on them.
enum class ExitCode : int {
  ok = 0,
  failed = 1,         ///< anything that has no code of its own
  usage = 2,          ///< an argument or environment variable that makes no sense
  device = 3,         ///< the device or its driver is not available, or failed
  input = 4,          ///< an input file cannot be read or is malformed
  cache = 5,          ///< the cache file cannot be used
  not_tuned = 6,      ///< a problem could not be tuned, or nothing compiled for it
  interrupted = 130,  ///< Ctrl-C
};

/// Ends the command with a message for standard error. The message names what was asked, what was found and what to
/// do, without the leading "hone: ".
class CommandError : public std::runtime_error {
 public:
  CommandError(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

}  // namespace hone::tuner
