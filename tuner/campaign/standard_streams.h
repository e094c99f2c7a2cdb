// RequestStream and answer(): how a child process of a campaign is told what to do, and tells what came of it.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "tuner/campaign/messages.h"

namespace hone::tuner {

/// The requests on standard input as they come in; a thread of its own reads them, so that a stop, and the end of the
/// one who asks, is noticed while something is measured or compiled. The process ends at once when standard input does:
/// whoever asked is gone, and what runs may never end. Lives as long as the process.
class RequestStream {
 public:
  RequestStream();

  /// Waits for the next one. Throws CommandError(failed) for a line that is none.
  Request next();

  /// Stops with StopRequest, which is not among the others.
  std::stop_token stop();

 private:
  void read();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;  ///< lines
  std::stop_source stop_;
  std::thread reader_;
};

/// Writes to standard output. Ends the process when nobody reads it any more.
void answer(const Answer& answer);

}  // namespace hone::tuner
