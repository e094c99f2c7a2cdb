#include "cache/place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "cache/errors.h"
#include "cache/file_size_signal.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

void create_folder(const fs::path& cache, const fs::path& folder) {
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return;
  create_folder(cache, folder.parent_path());
  // Another process may have made it meanwhile. If it is a file, the next step fails and says so.
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return;
  const std::string reason = std::generic_category().message(errno);
  throw store_error(cache, StoreFault::unopenable, "its folder " + folder.native() + " cannot be made: " + reason);
}

/// A descriptor of ours, never of a file that SQLite has open.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }

 private:
  int number_;
};

[[noreturn]] void throw_write_error(const fs::path& path) {
  const int error = errno;
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw store_error(path, is_full ? StoreFault::full : StoreFault::unopenable, std::generic_category().message(error));
}

void write_all(const fs::path& path, int descriptor, std::span<const std::byte> content) {
  while (!content.empty()) {
    const ::ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_write_error(path);
    content = content.subspan(static_cast<std::size_t>(written));
  }
  if (::fsync(descriptor) != 0) throw_write_error(path);
}

}  // namespace

void prepare_folder(const fs::path& path) {
  const fs::path folder = path.parent_path();
  create_folder(path, folder);
  // SQLite tries to open a file that it could not make, and then reports that there is none.
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return;
  const std::string reason = std::generic_category().message(errno);
  throw store_error(path, StoreFault::unopenable, "no file can be made in its folder: " + reason);
}

void replace_file(const fs::path& path, std::span<const std::byte> content) {
  const FileSizeSignal size_signal;
  std::string name = path.native() + ".XXXXXX";
  const Descriptor file(::mkostemp(name.data(), O_CLOEXEC));  // mode 0600
  if (file.number() < 0) throw_write_error(path);
  try {
    write_all(path, file.number(), content);
    if (::rename(name.c_str(), path.c_str()) != 0) throw_write_error(path);
  } catch (...) {
    ::unlink(name.c_str());
    throw;
  }
  const Descriptor folder(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.number() >= 0) ::fsync(folder.number());
}

void make_private(const fs::path& path) noexcept {
  // By name: closing a descriptor of our own would drop the locks that SQLite holds for the whole process. A file
  // system without permissions may refuse; that is no reason to do without a cache.
  // Somebody else's file in a sticky folder, or what they put in its place, is not touched.
  struct ::stat facts {};
  if (::lstat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != ::geteuid()) return;
  ::chmod(path.c_str(), S_IRUSR | S_IWUSR);
}

}  // namespace hone::cache
