#include "runtime/jit/run_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>

#include <hone/error.h>

namespace hone {
namespace {

namespace fs = std::filesystem;

/// The environment with messages in English, so that logs are the same everywhere, and without folders of headers:
/// those of a CUDA toolkit are for nvcc.
std::vector<std::string> tool_environment() {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable, name = text.substr(0, text.find('='));
    if (name != "LC_ALL" && name != "CPATH" && name != "C_INCLUDE_PATH" && name != "CPLUS_INCLUDE_PATH")
      result.emplace_back(text);
  }
  result.emplace_back("LC_ALL=C");
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// posix_spawn's list of what the child does with its files first.
class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

/// Makes the empty file, whatever the umask is. True if the umask took rights of the owner from it: a program that this
/// process starts could not read what it writes.
bool make_log(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return false;  // the program's failure tells
  struct stat status {};
  const bool lacks_rights = fstat(file, &status) == 0 && (status.st_mode & (S_IRUSR | S_IWUSR)) != (S_IRUSR | S_IWUSR);
  if (lacks_rights) fchmod(file, S_IRUSR | S_IWUSR);
  close(file);
  return lacks_rights;
}

/// Folders that the owner can use, whatever the umask is.
void make_folders(const fs::path& path) {
  if (path.empty() || fs::exists(path)) return;
  make_folders(path.parent_path());
  if (mkdir(path.c_str(), S_IRWXU) == 0) chmod(path.c_str(), S_IRWXU);
}

}  // namespace

int run_program(const fs::path& folder, std::vector<std::string> command, const fs::path& log) {
  // The umask is that of all threads, and posix_spawn() changes no umask.
  if (make_log(log)) command.insert(command.begin(), {"/bin/sh", "-c", "umask 077; exec \"$0\" \"$@\""});
  FileActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(actions.get(), STDOUT_FILENO, STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(actions.get(), folder.c_str());
  std::vector<std::string> environment = tool_environment();
  pid_t child = 0;
  const int failure = posix_spawn(&child, command.front().c_str(), actions.get(), nullptr, pointers(command).data(),
                                  pointers(environment).data());
  if (failure != 0) throw std::system_error(failure, std::generic_category(), command.front());
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waiting for " + command.front());
  return status;
}

fs::path find_on_path(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return access(name.c_str(), X_OK) == 0 ? fs::absolute(name) : fs::path();
  }
  const char* const path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    const fs::path candidate = fs::path(rest.substr(0, end)) / name;
    if (candidate.is_absolute() && access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return {};
}

void write_file(const fs::path& path, std::string_view text) {
  make_folders(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw no_room(path.parent_path(), std::strerror(errno));
  chmod(path.c_str(), S_IRUSR | S_IWUSR);
}

Error no_room(const fs::path& folder, std::string_view why) {
  return Error(ErrorCode::io_failed,
               fmt::format("cannot write to {}, which is needed to compile: {}; make room there, or set TMPDIR to a "
                           "folder that can be written",
                           folder.string(), why));
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace hone
