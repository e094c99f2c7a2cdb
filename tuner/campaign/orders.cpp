#include "tuner/campaign/orders.h"

#include <unistd.h>

#include <iostream>
#include <string>
#include <utility>

namespace hone::tuner {

using Json = nlohmann::json;

Orders::Orders() : reader_([this] { read(); }) { reader_.detach(); }

Json Orders::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !waiting_.empty(); });
  Json order = std::move(waiting_.front());
  waiting_.pop_front();
  return order;
}

std::stop_token Orders::stop() {
  const std::scoped_lock lock(mutex_);
  return stop_.get_token();
}

void Orders::read() {
  for (std::string line; std::getline(std::cin, line);) {
    Json order = Json::parse(line, nullptr, false);
    const std::scoped_lock lock(mutex_);
    if (order.contains("stop")) {
      stop_.request_stop();
    } else {
      waiting_.push_back(std::move(order));
      changed_.notify_one();
    }
  }
  _exit(0);
}

void answer(std::string_view kind, Json body) {
  Json message;
  message[std::string(kind)] = std::move(body);
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(STDOUT_FILENO, text.data() + written, text.size() - written);
    if (count <= 0) _exit(0);
    written += static_cast<std::size_t>(count);
  }
}

}  // namespace hone::tuner
