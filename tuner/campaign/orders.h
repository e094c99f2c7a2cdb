// Orders and answer(): how a child process of a campaign is told what to do, and tells what came of it.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>

#include <nlohmann/json.hpp>

namespace hone::tuner {

/// The orders on standard input, one JSON object on each line, as they come in; a thread of its own reads them, so that
/// a stop, and the end of the one who gives them, is noticed while something is measured or compiled. The process ends
/// at once when standard input does: whoever gave the orders is gone, and what runs may never end. Lives as long as the
/// process.
class Orders {
 public:
  Orders();

  /// Waits for the next one.
  nlohmann::json next();

  /// Of the order {"stop": true}, which is not among the others.
  std::stop_token stop();

 private:
  void read();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<nlohmann::json> waiting_;
  std::stop_source stop_;
  std::thread reader_;
};

/// Writes {kind: body} to standard output, on a line of its own. Ends the process when nobody reads it any more.
void answer(std::string_view kind, nlohmann::json body);

}  // namespace hone::tuner
