#include "benchmarks/tuner_regret/process.h"

#include <fmt/format.h>

#include <array>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <stop_token>
#include <thread>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hone/error.h>

namespace hone::benchmarks {
namespace {

/// Starts the command with both its outputs in `to`; `from` is not for it.
pid_t start(std::vector<std::string>& command, int to, int from) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) posix_spawn_file_actions_adddup2(&actions, to, output);
  for (const int end : {to, from}) posix_spawn_file_actions_addclose(&actions, end);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  pid_t process = -1;
  const int failure = posix_spawnp(&process, words.front(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0)
    throw Error(ErrorCode::io_failed, fmt::format("cannot run {}: {}", command.front(), std::strerror(failure)));
  return process;
}

/// Waits for as long as nobody asks it to stop.
void interrupt(pid_t process, std::chrono::milliseconds after, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait_for(lock, stop, after, [] { return false; });
  if (!stop.stop_requested()) kill(process, SIGINT);
}

}  // namespace

Output run_process(std::vector<std::string> command, std::optional<std::chrono::milliseconds> interrupt_after) {
  int ends[2];
  if (pipe(ends) != 0) throw Error(ErrorCode::io_failed, "no pipe could be made");
  pid_t process = -1;
  try {
    process = start(command, ends[1], ends[0]);
  } catch (const Error&) {
    for (const int end : ends) close(end);
    throw;
  }
  close(ends[1]);
  Output output;
  {
    std::jthread interrupter;
    if (interrupt_after)
      interrupter = std::jthread([&](const std::stop_token& stop) { interrupt(process, *interrupt_after, stop); });
    std::array<char, 4096> buffer;
    for (ssize_t count; (count = read(ends[0], buffer.data(), buffer.size())) > 0;)
      output.text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(process, &status, 0);
  output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

}  // namespace hone::benchmarks
