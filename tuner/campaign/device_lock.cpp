#include "tuner/campaign/device_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "tuner/command_error.h"
#include "tuner/table.h"

namespace hone::tuner {
namespace {

constexpr std::chrono::milliseconds kPause{100};

/// The process that wrote its number last, which is the one that holds the lock.
long read_holder(int descriptor) {
  std::array<char, 32> text{};
  return pread(descriptor, text.data(), text.size() - 1, 0) > 0 ? std::strtol(text.data(), nullptr, 10) : 0;
}

}  // namespace

DeviceLock::DeviceLock(const std::filesystem::path& cache, const std::string& device, const std::stop_token& stop,
                       const std::function<void(long process)>& on_wait) {
  const std::string path = cache.string() + "." + device + ".tuning";
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0)
    throw CommandError(ExitCode::cache, fmt::format("'{}', which keeps two campaigns apart, cannot be made: {}",
                                                    printable(path), std::strerror(errno)));
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
  const std::string holder = fmt::format("{:<20}\n", getpid());
  [[maybe_unused]] const ssize_t ignored = pwrite(descriptor, holder.data(), holder.size(), 0);
}

DeviceLock::~DeviceLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

DeviceLock::DeviceLock(DeviceLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

}  // namespace hone::tuner
