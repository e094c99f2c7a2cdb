#include "tuner/campaign/standard_streams.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include <nlohmann/json.hpp>

namespace hone::tuner {

using Json = nlohmann::json;

RequestStream::RequestStream() : reader_([this] { read(); }) { reader_.detach(); }

Request RequestStream::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !waiting_.empty(); });
  const std::string line = std::move(waiting_.front());
  waiting_.pop_front();
  lock.unlock();
  return request_from_json(Json::parse(line, nullptr, false));
}

std::stop_token RequestStream::stop() {
  const std::scoped_lock lock(mutex_);
  return stop_.get_token();
}

void RequestStream::read() {
  static const std::string stop = to_json(Request(StopRequest{})).dump();
  for (std::string line; std::getline(std::cin, line);) {
    const std::scoped_lock lock(mutex_);
    if (line == stop) {
      stop_.request_stop();
    } else {
      waiting_.push_back(std::move(line));
      changed_.notify_one();
    }
  }
  _exit(0);
}

void answer(const Answer& answer) {
  const std::string text = to_json(answer).dump() + '\n';
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(STDOUT_FILENO, text.data() + written, text.size() - written);
    if (count <= 0) _exit(0);
    written += static_cast<std::size_t>(count);
  }
}

}  // namespace hone::tuner
