#include "tuner/array/fatal_signal.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>

#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

constexpr std::array kFatalSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};

/// The texts that a handler writes, which may not make one.
struct FatalMessages {
  std::array<std::string, NSIG> of_signal;
};
std::atomic<const FatalMessages*> fatal_messages = nullptr;

void say_and_end(int number) {
  if (const FatalMessages* const known = fatal_messages.load()) {
    const std::string& text = known->of_signal[static_cast<std::size_t>(number)];
    if (write(STDERR_FILENO, text.data(), text.size()) < 0) {
      // There is nowhere else to say it.
    }
  }
  std::signal(number, SIG_DFL);
  raise(number);
}

}  // namespace

FatalSignalReport::FatalSignalReport(const std::string& kernel_file) {
  auto* const made = new FatalMessages;
  struct sigaction action {};
  action.sa_handler = say_and_end;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int number : kFatalSignals) {
    made->of_signal[static_cast<std::size_t>(number)] =
        fmt::format("hone: signal {} ({}) ended the command while it ran the kernel of '{}'; hone check finds the "
                    "fault\n",
                    number, strsignal(number), printable(kernel_file));
    struct sigaction present {};
    const bool is_free = sigaction(number, nullptr, &present) == 0 && present.sa_handler == SIG_DFL;
    if (is_free) sigaction(number, &action, nullptr);
  }
  fatal_messages = made;
}

FatalSignalReport::~FatalSignalReport() { delete fatal_messages.exchange(nullptr); }

}  // namespace hone::tuner
