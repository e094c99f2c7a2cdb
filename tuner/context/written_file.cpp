#include "tuner/context/written_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hone/error.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "tuner/text/command_error.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
constexpr int kMostLinks = 40;     // as many as Linux follows itself
constexpr int kMostPartials = 100;  // left behind by processes that were killed

/// Where the symbolic links at `path` lead to, whether there is something or not.
fs::path followed(fs::path path) {
  std::error_code error;
  for (int links = 0; links < kMostLinks && fs::is_symlink(path, error); ++links) {
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path;
}

bool is_database(const fs::path& path) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  std::error_code error;
  std::array<char, kMagic.size()> begin{};
  return fs::is_regular_file(path, error) &&
         std::ifstream(path, std::ios::binary).read(begin.data(), begin.size()) &&
         std::string_view(begin.data(), begin.size()) == kMagic;
}

/// The database that SQLite or a campaign looks at this path for: CACHE of CACHE-journal, CACHE-wal, CACHE-shm,
/// CACHE.machine and CACHE.DEVICE.tuning. Empty if there is none.
fs::path database_beside(const fs::path& path) {
  const std::string name = path.filename().string();
  for (const std::string_view suffix : {"-journal", "-wal", "-shm", ".machine", ".tuning"}) {
    if (!name.ends_with(suffix)) continue;
    const std::size_t end = name.size() - suffix.size();
    const std::size_t device = suffix == ".tuning" ? name.rfind('.', end - 1) : end;
    if (device == 0 || device == std::string::npos) continue;
    if (fs::path database = path.parent_path() / name.substr(0, device); is_database(database)) return database;
  }
  return {};
}

[[noreturn]] void refuse_target(const fs::path& path, std::string_view why) {
  throw CommandError(ExitCode::usage, fmt::format("'{}' {}, and is not replaced; give another file to write to",
                                                  printable(path.string()), why));
}

}  // namespace

void refuse_what_belongs_to_a_database(const fs::path& path) {
  for (const fs::path& each : {path, followed(path)})
    if (const fs::path database = database_beside(each); !database.empty())
      refuse_target(path, fmt::format("belongs to the database '{}'", printable(database.string())));
}

class WrittenFile::Buffer final : public std::streambuf {
 public:
  explicit Buffer(int descriptor) : descriptor_(descriptor), bytes_(kBufferBytes) { clear(); }

  int error() const { return error_; }

 protected:
  int_type overflow(int_type byte) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(byte, traits_type::eof())) sputc(traits_type::to_char_type(byte));
    return traits_type::not_eof(byte);
  }

  int sync() override {
    for (const char* next = pbase(); next < pptr() && error_ == 0;) {
      const ::ssize_t written = ::write(descriptor_, next, static_cast<std::size_t>(pptr() - next));
      if (written >= 0) next += written;
      else if (errno != EINTR) error_ = errno;
    }
    clear();
    return error_ == 0 ? 0 : -1;
  }

 private:
  void clear() { setp(bytes_.data(), bytes_.data() + bytes_.size()); }

  int descriptor_;
  int error_ = 0;
  std::vector<char> bytes_;
};

bool is_standard_output(const fs::path& path) { return path == "-" || path == "/dev/stdout"; }

WrittenFile::WrittenFile(const fs::path& path, std::ostream& standard_output, std::vector<fs::path> read_files)
    : path_(path), read_files_(std::move(read_files)) {
  if (is_standard_output(path)) {
    standard_output_ = &standard_output;
    return;
  }
  struct ::stat facts {};
  const bool exists = ::stat(path.c_str(), &facts) == 0;
  if (exists && S_ISDIR(facts.st_mode)) fail(EISDIR);
  if (exists && !S_ISREG(facts.st_mode)) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (descriptor_ < 0) fail(errno);
  } else {
    refuse_what_is_needed();
    open_beside();
    if (exists) {
      // As far as the user may: a file of somebody else's becomes his own, as with any editor.
      [[maybe_unused]] const int ignored = ::fchown(descriptor_, facts.st_uid, facts.st_gid);
      ::fchmod(descriptor_, facts.st_mode & 07777);
    }
  }
  buffer_ = std::make_unique<Buffer>(descriptor_);
  own_.rdbuf(buffer_.get());
}

WrittenFile::~WrittenFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

/// In the target's folder, from where it can be renamed. Without a name for now, where the file system has such files,
/// so that a process that is killed leaves nothing.
void WrittenFile::open_beside() {
  is_replaced_ = true;
  const fs::path folder = followed(path_).parent_path();
  descriptor_ = ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (descriptor_ >= 0 && ::access(own_path().c_str(), F_OK) == 0) return;
  if (descriptor_ >= 0) ::close(descriptor_);
  name_partial([&](const fs::path& name) {
    descriptor_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return descriptor_ >= 0;
  });
}

/// A path of the open file, whether it has a name or not.
std::string WrittenFile::own_path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

/// Calls make(name) until that has made a file: never onto what somebody has put there.
void WrittenFile::name_partial(const std::function<bool(const fs::path& name)>& make) {
  const fs::path target = followed(path_);
  for (int i = 0; i < kMostPartials; ++i) {
    const fs::path name = fmt::format("{}.partial.{}.{}", target.native(), ::getpid(), i);
    if (make(name)) {
      partial_ = name;
      return;
    }
    if (errno != EEXIST) break;
  }
  fail(errno);
}

/// A mistyped name must not cost anybody a cache or a source.
void WrittenFile::refuse_what_is_needed() const {
  if (is_database(path_)) refuse_target(path_, "is a cache or another database of SQLite");
  refuse_what_belongs_to_a_database(path_);
  std::error_code error;
  for (const fs::path& read : read_files_)
    if (fs::equivalent(path_, read, error)) refuse_target(path_, "was read by this command");
}

std::ostream& WrittenFile::stream() { return standard_output_ ? *standard_output_ : own_; }

void WrittenFile::finish() {
  stream().flush();
  if (standard_output_) return;
  if (buffer_->error() != 0 || !own_) fail(buffer_->error());
  if (!is_replaced_) return;
  if (::fsync(descriptor_) != 0) fail(errno);
  refuse_what_is_needed();  // a cache that the command may have made meanwhile
  if (partial_.empty())
    name_partial([&](const fs::path& name) {
      return ::linkat(AT_FDCWD, own_path().c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    });
  if (::rename(partial_.c_str(), followed(path_).c_str()) != 0) fail(errno);
  partial_.clear();
}

void WrittenFile::fail(int error) const {
  throw Error(ErrorCode::io_failed,
              fmt::format("cannot write '{}': {}; give another file to write to", printable(path_.string()),
                          std::generic_category().message(error == 0 ? EIO : error)));
}

}  // namespace hone::tuner
