// The hone command's edge: arguments, terminal, signals. Everything else is run_command().
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/campaign/compilers.h"
#include "tuner/campaign/worker.h"
#include "tuner/command.h"
#include "tuner/explain/counters.h"
#include "tuner/interrupt.h"
#include "tuner/text/command_error.h"

namespace {

constexpr int kUsualColumns = 80;

/// Columns of the terminal behind a file descriptor; 0 when it is none.
int terminal_columns(int descriptor) {
  if (isatty(descriptor) == 0) return 0;
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

/// no-color.org: any value but "" turns color off.
bool may_color() {
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') && (terminal == nullptr || std::string_view(terminal) != "dumb");
}

}  // namespace

int main(int argc, char** argv) {
  // A file that may not grow (ulimit -f) is an error that names it, as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (!args.empty() && args.front() == hone::tuner::kWorkerCommand)
    return hone::tuner::run_worker([](const std::string& name) { return hone::Device::open(name); });
  if (!args.empty() && args.front() == hone::tuner::kCompilerCommand) hone::tuner::run_compiler();

  if (!args.empty() && args.front() == hone::tuner::kCountedCommand)
    return hone::tuner::run_counted(std::span(args).subspan(1));

  std::optional<hone::tuner::InterruptWatcher> watcher;
  hone::tuner::Environment environment;
  environment.out_columns = [] { return terminal_columns(STDOUT_FILENO); };
  environment.err_columns = [] { return terminal_columns(STDERR_FILENO); };
  environment.may_color = may_color();
  environment.worker_program = "/proc/self/exe";
  environment.watch_interrupts = [&] { return watcher.emplace().token(); };

  const int code = hone::tuner::run_command(args, std::cout, std::cerr, environment);
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "hone: the output could not be written; is the disk full?\n";
    return code != 0 ? code : static_cast<int>(hone::tuner::ExitCode::input);
  }
  return code;
}
