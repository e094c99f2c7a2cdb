#include "tuner/campaign/device_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "cache/place.h"
#include "tuner/text/command_error.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

constexpr std::chrono::milliseconds kPause{100};

/// The process that wrote its number last, which is the one that holds the lock.
long read_holder(int descriptor) {
  std::array<char, 32> text{};
  return pread(descriptor, text.data(), text.size() - 1, 0) > 0 ? std::strtol(text.data(), nullptr, 10) : 0;
}

/// As long as what a holder writes, so that one overwrites the other's.
std::string holder_text(long process) { return fmt::format("{:<20}\n", process); }

/// Opens or makes it; never follows a link, blocks on a FIFO or cuts off what is there. Throws CommandError(cache).
int open_lock_file(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
  const auto refuse = [&](std::string_view why) {
    return CommandError(ExitCode::cache,
                        fmt::format("'{}', which keeps two campaigns apart, cannot be used: {}; remove it, or give"
                                    " --cache PATH in another folder",
                                    printable(path), why));
  };
  if (descriptor < 0) throw refuse(errno == ELOOP ? "it is a symbolic link" : std::strerror(errno));
  struct stat facts {};
  std::string_view why;
  if (fstat(descriptor, &facts) != 0) why = std::strerror(errno);
  else if (!S_ISREG(facts.st_mode)) why = "it is not a regular file";
  else if (facts.st_uid != geteuid() && facts.st_uid != 0) why = "it belongs to another user";
  else if (facts.st_nlink > 1) why = "it has another name (a hard link)";
  else if (facts.st_size != 0 && facts.st_size != static_cast<off_t>(holder_text(0).size())) why = "it is another file";
  if (why.empty()) {
    // A umask may have taken the owner's rights from it.
    if (facts.st_uid == geteuid()) fchmod(descriptor, S_IRUSR | S_IWUSR);
    return descriptor;
  }
  close(descriptor);
  throw refuse(why);
}

}  // namespace

DeviceLock::DeviceLock(const std::filesystem::path& cache, const std::string& device, const std::stop_token& stop,
                       const std::function<void(long process)>& on_wait) {
  const std::string path = cache.string() + "." + device + ".tuning";
  cache::require_writable_place(cache);
  const int descriptor = open_lock_file(path);
  for (bool has_waited = false; flock(descriptor, LOCK_EX | LOCK_NB) != 0; has_waited = true) {
    // Where locks are not supported, two campaigns are told apart by what the cache answers.
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    if (stop.stop_requested()) {
      close(descriptor);
      return;
    }
    if (!has_waited) on_wait(read_holder(descriptor));
    std::this_thread::sleep_for(kPause);
  }
  descriptor_ = descriptor;
  const std::string holder = holder_text(getpid());
  [[maybe_unused]] const ssize_t ignored = pwrite(descriptor, holder.data(), holder.size(), 0);
}

DeviceLock::~DeviceLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

DeviceLock::DeviceLock(DeviceLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

}  // namespace hone::tuner
