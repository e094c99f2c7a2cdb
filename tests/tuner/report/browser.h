// Browser: a headless Chromium that a test opens pages in, over the DevTools protocol on two pipes.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/tuner/support.h"

namespace hone::tuner::testing {

/// The browser of HONE_BROWSER, else the first of chromium, chromium-browser, google-chrome on PATH; none where there
/// is none.
std::optional<std::string> browser_program();

class Browser {
 public:
  /// Starts it with a profile of its own. Throws std::runtime_error where it does not start.
  explicit Browser(const std::string& program);
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  /// Opens a page in a window of this width, and waits until it is loaded.
  void open(const std::string& url, int width);

  /// The value of an expression, after what the promises of the page still do. Throws where it throws.
  nlohmann::json evaluate(const std::string& expression);

  /// A PNG of the whole page.
  void take_screenshot(const std::filesystem::path& file);

  /// The page's messages to the console, and its errors, since it was opened.
  const std::vector<std::string>& messages() const { return messages_; }

 private:
  nlohmann::json call(const std::string& method, nlohmann::json parameters = nlohmann::json::object());
  nlohmann::json read_message();
  void note(const nlohmann::json& event);

  TemporaryFolder profile_;
  pid_t process_ = -1;
  int to_ = -1, from_ = -1;
  int last_id_ = 0;
  std::string session_, unread_;
  bool is_loaded_ = false;
  std::vector<std::string> messages_;
};

}  // namespace hone::tuner::testing
