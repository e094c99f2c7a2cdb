#include "tuner/campaign/worker_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <thread>
#include <utility>

#include "tuner/campaign/worker.h"
#include "tuner/text/command_error.h"

extern char** environ;

namespace hone::tuner {
namespace {

using Json = nlohmann::json;

[[noreturn]] void fail(std::string_view doing, int error) {
  throw CommandError(ExitCode::failed,
                     fmt::format("a process could not be started: {}: {}", doing, std::strerror(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

/// Both ends of a pipe that no other child inherits.
struct Pipe {
  Pipe() : Pipe(make()) {}

  Descriptor to_read, to_write;

 private:
  explicit Pipe(const std::array<int, 2>& ends) : to_read(ends[0]), to_write(ends[1]) {}

  static std::array<int, 2> make() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe", errno);
    return ends;
  }
};

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  void place(int descriptor, int as) { posix_spawn_file_actions_adddup2(&actions_, descriptor, as); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

/// A write to a worker that has died must not end the campaign.
void ignore_broken_pipes() {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& command) {
  ignore_broken_pipes();
  Descriptor record(memfd_create("hone-running", MFD_CLOEXEC));
  if (record.get() < 0 || ftruncate(record.get(), kRunningBytes) != 0) fail("memfd_create", errno);
  Pipe to, from;
  FileActions actions;
  // A copy onto itself would keep close-on-exec; descriptors from pipe2() could be 3 where 0 to 2 are closed.
  const Descriptor its_record(fcntl(record.get(), F_DUPFD_CLOEXEC, kRunningDescriptor + 8));
  actions.place(to.to_read.get(), STDIN_FILENO);
  actions.place(from.to_write.get(), STDOUT_FILENO);
  actions.place(its_record.get(), kRunningDescriptor);
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int error = posix_spawn(&pid_, argv[0], actions.get(), nullptr, argv.data(), environ);
  if (error != 0) fail(command.front(), error);
  in_ = to.to_write.release();
  out_ = from.to_read.release();
  record_ = record.release();
  fcntl(out_, F_SETFL, O_NONBLOCK);
}

WorkerProcess::~WorkerProcess() {
  kill_now();
  close_all();
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      in_(std::exchange(other.in_, -1)),
      out_(std::exchange(other.out_, -1)),
      record_(std::exchange(other.record_, -1)),
      ended_(other.ended_),
      status_(other.status_),
      unread_(std::move(other.unread_)) {}

WorkerProcess& WorkerProcess::operator=(WorkerProcess&& other) noexcept {
  if (this == &other) return *this;
  kill_now();
  close_all();
  pid_ = std::exchange(other.pid_, 0);
  in_ = std::exchange(other.in_, -1);
  out_ = std::exchange(other.out_, -1);
  record_ = std::exchange(other.record_, -1);
  ended_ = other.ended_;
  status_ = other.status_;
  unread_ = std::move(other.unread_);
  return *this;
}

void WorkerProcess::send(const Request& request) const {
  const std::string text = to_json(request).dump() + '\n';
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(in_, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    written += static_cast<std::size_t>(count);
  }
}

std::vector<Answer> WorkerProcess::receive() {
  std::array<char, 65536> buffer{};
  while (!ended_) {
    const ssize_t count = read(out_, buffer.data(), buffer.size());
    if (count > 0) {
      unread_.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
      ended_ = true;
    } else if (errno == EAGAIN) {
      break;
    }
  }
  std::vector<Answer> answers;
  std::size_t begin = 0;
  for (std::size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n', begin)) {
    const Json answer = Json::parse(unread_.begin() + static_cast<std::ptrdiff_t>(begin),
                                    unread_.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (answer.is_object()) answers.push_back(answer_from_json(answer));
    begin = end + 1;
  }
  unread_.erase(0, begin);
  return answers;
}

std::string WorkerProcess::how_it_ended() {
  int status = 0;
  if (!status_ && pid_ > 0 && waitpid(pid_, &status, 0) == pid_) {
    status_ = status;
    pid_ = 0;
  }
  if (!status_) return "ended";
  if (WIFSIGNALED(*status_))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(*status_), strsignal(WTERMSIG(*status_)));
  return fmt::format("ended with code {}", WEXITSTATUS(*status_));
}

void WorkerProcess::kill_now() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  // One that waits inside a driver whose device is gone may never end.
  for (int tries = 0; tries < 100; ++tries) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = status;
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(tries < 50 ? 2 : 50));
  }
  pid_ = 0;
  ended_ = true;
}

WorkerProcess::Running WorkerProcess::running() const {
  std::array<char, kRunningBytes> text{};
  if (pread(record_, text.data(), text.size() - 1, 0) <= 0) return {};
  Running running;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), running.count);
  if (error != std::errc{} || *end != ' ') return {};
  running.candidate = end + 1;
  return running;
}

void WorkerProcess::close_all() noexcept {
  for (int* descriptor : {&in_, &out_, &record_}) {
    if (*descriptor >= 0) close(*descriptor);
    *descriptor = -1;
  }
}

}  // namespace hone::tuner
