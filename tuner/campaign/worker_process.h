// WorkerProcess: a worker as its campaign sees it, or a compiler as its worker does: requests in, answers out, and
// what it ran when it died.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tuner/campaign/messages.h"

namespace hone::tuner {

/// A child process with pipes for its standard input and output. Move-only; the destructor kills what still runs. Used
/// by one thread. Errors of the operating system are CommandError(failed).
class WorkerProcess {
 public:
  /// Starts `command`, a program and its arguments. The child inherits standard error and nothing else.
  explicit WorkerProcess(const std::vector<std::string>& command);
  ~WorkerProcess();
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&& other) noexcept;

  /// A worker that is gone is noticed by has_ended().
  void send(const Request& request) const;

  /// The answers that have arrived since; lines that are no JSON object are left out. Throws CommandError(failed) for
  /// an object that is no answer.
  std::vector<Answer> receive();

  /// Readable when there is something to receive, or when the worker has ended.
  int descriptor() const { return out_; }

  /// True if its output has ended; then how_it_ended() waits for it.
  bool has_ended() const { return ended_; }

  /// "was killed by signal 11 (Segmentation fault)", "ended with code 1"; waits for the end.
  std::string how_it_ended();

  void kill_now();

  /// It wrote this down before it ran something the last time.
  struct Running {
    std::uint64_t count = 0;  ///< of runs; 0: nothing ran yet
    std::string candidate;    ///< as JSON
  };
  Running running() const;

 private:
  void close_all() noexcept;

  pid_t pid_ = 0;
  int in_ = -1;
  int out_ = -1;
  int record_ = -1;
  bool ended_ = false;
  std::optional<int> status_;
  std::string unread_;
};

}  // namespace hone::tuner
