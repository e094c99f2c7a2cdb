#include "tests/tuner/report/browser.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tuner/text/base64.h"

namespace hone::tuner::testing {
namespace {

using Json = nlohmann::json;

constexpr int kPatienceMs = 60'000;
constexpr int kCommands = 3, kAnswers = 4;  // the descriptors of --remote-debugging-pipe

}  // namespace

std::optional<std::string> browser_program() {
  if (const char* named = getenv("HONE_BROWSER")) return named;
  const char* path = getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
      const std::string program = folder + "/" + name;
      if (access(program.c_str(), X_OK) == 0) return program;
    }
  return std::nullopt;
}

Browser::Browser(const std::string& program) {
  std::array<int, 2> commands{}, answers{};
  if (pipe2(commands.data(), O_CLOEXEC) != 0 || pipe2(answers.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipes to the browser");
  const std::string profile = "--user-data-dir=" + profile_.path().string();
  process_ = fork();
  if (process_ == 0) {
    setpgid(0, 0);
    // The numbers that the browser expects may be those of the pipes themselves: they are moved out of the way first.
    const int in = fcntl(commands[0], F_DUPFD, 10), out = fcntl(answers[1], F_DUPFD, 10);
    dup2(in, kCommands);
    dup2(out, kAnswers);
    const int nowhere = ::open("/dev/null", O_RDWR);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execl(program.c_str(), program.c_str(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
          "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe",
          profile.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(commands[0]);
  close(answers[1]);
  to_ = commands[1];
  from_ = answers[0];
  const Json target = call("Target.createTarget", {{"url", "about:blank"}});
  session_ = call("Target.attachToTarget", {{"targetId", target["targetId"]}, {"flatten", true}})["sessionId"];
  for (const char* domain : {"Page.enable", "Runtime.enable", "Log.enable"}) call(domain);
}

Browser::~Browser() {
  close(to_);
  close(from_);
  if (process_ <= 0) return;
  kill(-process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

void Browser::open(const std::string& url, int width) {
  call("Emulation.setDeviceMetricsOverride",
       {{"width", width}, {"height", 900}, {"deviceScaleFactor", 1}, {"mobile", false}});
  call("Page.navigate", {{"url", "about:blank"}});
  messages_.clear();
  is_loaded_ = false;
  call("Page.navigate", {{"url", url}});
  while (!is_loaded_ || evaluate("document.readyState") != "complete") {
    if (!is_loaded_) note(read_message());
  }
}

Json Browser::evaluate(const std::string& expression) {
  const Json answer =
      call("Runtime.evaluate", {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
  if (answer.contains("exceptionDetails")) throw std::runtime_error(expression + ": " + answer.dump());
  return answer["result"].contains("value") ? answer["result"]["value"] : Json(nullptr);
}

void Browser::take_screenshot(const std::filesystem::path& file) {
  const Json answer = call("Page.captureScreenshot", {{"format", "png"}, {"captureBeyondViewport", true}});
  const std::vector<std::byte> bytes = from_base64(answer["data"].get<std::string>()).value();
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

Json Browser::call(const std::string& method, Json parameters) {
  const int id = ++last_id_;
  Json message{{"id", id}, {"method", method}, {"params", std::move(parameters)}};
  if (!session_.empty()) message["sessionId"] = session_;
  const std::string text = message.dump() + '\0';
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = write(to_, text.data() + sent, text.size() - sent);
    if (count <= 0) throw std::runtime_error("the browser is gone");
    sent += static_cast<std::size_t>(count);
  }
  while (true) {
    const Json answer = read_message();
    if (answer.value("id", 0) != id) {
      note(answer);
      continue;
    }
    if (answer.contains("error")) throw std::runtime_error(method + ": " + answer["error"].dump());
    return answer["result"];
  }
}

Json Browser::read_message() {
  std::size_t end;
  while ((end = unread_.find('\0')) == std::string::npos) {
    pollfd ready{.fd = from_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kPatienceMs) <= 0) throw std::runtime_error("the browser does not answer");
    std::array<char, 65536> buffer;
    const ssize_t count = read(from_, buffer.data(), buffer.size());
    if (count <= 0) throw std::runtime_error("the browser did not start, or is gone");
    unread_.append(buffer.data(), static_cast<std::size_t>(count));
  }
  const Json message = Json::parse(unread_.substr(0, end));
  unread_.erase(0, end + 1);
  return message;
}

void Browser::note(const Json& event) {
  const std::string method = event.value("method", "");
  if (method == "Page.loadEventFired") is_loaded_ = true;
  if (method == "Runtime.consoleAPICalled" || method == "Runtime.exceptionThrown" || method == "Log.entryAdded")
    messages_.push_back(event["params"].dump());
}

}  // namespace hone::tuner::testing
