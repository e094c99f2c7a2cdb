// Error: the one exception type that Hone throws.
#pragma once

#include <stdexcept>
#include <string>

namespace hone {

/// The kind of an error. The values are stable. The `hone` command derives its exit code from them.
enum class ErrorCode {
  invalid_argument,  ///< the caller asked for something that has no meaning (null pointer, negative size)
  unsupported,       ///< the request is well formed, but this build or device cannot do it
  not_found,         ///< a named thing (device, file, family, operation) does not exist
  compile_failed,    ///< a kernel did not compile; the message carries the compiler's log
  device_failed,     ///< the driver, or the checked host device, reported a failure
  out_of_memory,     ///< the device has too little free memory
  cache_failed,      ///< the cache file cannot be used; thrown only where the cache itself was asked for
  io_failed,         ///< a file cannot be read or written
  not_tuned,         ///< no winner serves the problem, and the session has MissPolicy::error
  device_lost,       ///< nothing runs on the device any more, since its context is corrupt or it is gone; start a
                     ///< new process
};

/// Thrown for everything that is not an ordinary outcome. The message says what was asked, what was found and what to
/// do. Ordinary outcomes, such as a cache miss or a rejected candidate, are values instead.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace hone
