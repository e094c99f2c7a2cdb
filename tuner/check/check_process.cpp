#include "tuner/check/check_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include <hone/error.h>
#include <nlohmann/json.hpp>

#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::json;
using Judge = std::function<std::string(const HostCheckReport&)>;

/// Stands before the report, where JSON may have white space, once HostCheck::large has begun.
constexpr char kLargeBegan = '\n';

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) _exit(1);
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Returns what the child has to say: a report, or the error that was thrown.
std::string checked(const HostCheck& check, const Judge& judge) {
  Json json;
  try {
    HostCheckReport report = check_on_host(check);
    if (report.ok() && judge) report.failure = judge(report);
    json = {{"failure", report.failure},
            {"order", to_string(report.failed_order)},
            {"ran_too_long", report.ran_too_long},
            {"large_not_run", report.large_not_run},
            {"not_traced", report.not_traced}};
  } catch (const Error& error) {
    json = {{"error", static_cast<int>(error.code())}, {"message", error.what()}};
  }
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

/// Ends with its parent, and by the signals that the parent handles.
[[noreturn]] void run_child(const HostCheck& check, const Judge& judge, int report, pid_t parent) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  std::string text;
  try {
    HostCheck announced = check;
    if (announced.large)
      announced.large->run = [run = check.large->run, report](const HostRun& host) {
        write_all(report, {&kLargeBegan, 1});
        run(host);
      };
    text = checked(announced, judge);
  } catch (...) {
    _exit(1);  // out of memory: there is no report
  }
  write_all(report, text);
  std::fflush(stdout);
  _exit(0);
}

std::string read_to_end(int descriptor) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t got = read(descriptor, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

std::string spell_status(int status) {
  if (WIFSIGNALED(status)) return fmt::format("by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("with exit status {}", WEXITSTATUS(status));
}

}  // namespace

HostCheckReport check_in_child(const HostCheck& check, const Judge& judge) {
  const auto fail = [](std::string_view doing) {
    throw CommandError(ExitCode::failed, fmt::format("a process could not be started: {}: {}", doing,
                                                     std::strerror(errno)));
  };
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
  std::fflush(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) fail("fork");
  if (child == 0) run_child(check, judge, ends[1], parent);
  close(ends[1]);
  const std::string text = read_to_end(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const Json json = Json::parse(text, nullptr, false);
  HostCheckReport report;
  if (json.is_discarded() || !json.is_object()) {
    report.failed_order = check.orders.front();
    const bool ended_large = text.starts_with(kLargeBegan);
    report.failure = fmt::format("{}the process of the check ended {}, before the check was over\n"
                                 "  a kernel may not end it: look for addresses without memory, for calls of exit "
                                 "functions, and at what runs when the file is loaded, such as constructors of global "
                                 "variables",
                                 ended_large ? fmt::format("with {}: ", check.large->label) : "", spell_status(status));
    return report;
  }
  if (json.contains("error")) throw Error(static_cast<ErrorCode>(json["error"].get<int>()), json["message"]);
  report.failure = json["failure"];
  report.failed_order = parse_host_order(json["order"].get<std::string>());
  report.ran_too_long = json["ran_too_long"];
  report.large_not_run = json["large_not_run"];
  report.not_traced = json["not_traced"];
  return report;
}

}  // namespace hone::tuner
