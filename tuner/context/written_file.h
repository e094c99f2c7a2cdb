// WrittenFile: where a command's output goes that was named by --output or FILE.
#pragma once

#include <filesystem>
#include <memory>
#include <ostream>
#include <streambuf>

namespace hone::tuner {

/// "-" and "/dev/stdout" are the standard output. A regular file, or a name where there is none, gets its content at once
/// and only when all of it is on the disk: what was there stays until then, and the file keeps its mode and, as far as
/// the user may give it away, its owner; of a symbolic link that is the file it leads to. Anything else (a device, a
/// FIFO, a socket's file) is opened and written to as it is. A database of SQLite, as caches are, is not replaced, by
/// whichever name or link.
///
/// A file that is not finished with finish() leaves no trace of what was written. Throws CommandError(usage) for a
/// database, and otherwise Error(io_failed) that names the path and the reason.
class WrittenFile {
 public:
  /// Opens it, so that what cannot be written is refused before anything is computed. `standard_output` must outlive
  /// the object.
  WrittenFile(const std::filesystem::path& path, std::ostream& standard_output);
  ~WrittenFile();
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  /// Sticks to the first error; finish() throws it.
  std::ostream& stream();

  /// Puts the file in place. Once only.
  void finish();

 private:
  class Buffer;

  void open_beside();
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_, partial_;  ///< partial_: empty where nothing is replaced
  int descriptor_ = -1;
  std::unique_ptr<Buffer> buffer_;
  std::ostream own_{nullptr};
  std::ostream* standard_output_ = nullptr;
};

/// True if a path means the standard output, so that what people read has to go elsewhere.
bool is_standard_output(const std::filesystem::path& path);

}  // namespace hone::tuner
