// WrittenFile: where a command's output goes that was named by --output or FILE.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <streambuf>
#include <string>
#include <vector>

namespace hone::tuner {

/// "-" and "/dev/stdout" are the standard output. A regular file, or a name where there is none, gets its content at
/// once and only when all of it is on the disk: what was there stays until then, and the file keeps its mode and, as
/// far as the user may give it away, its owner; of a symbolic link that is the file it leads to. Anything else (a
/// device, a FIFO, a socket's file) is opened and written to as it is. Not replaced, by whichever name or link, are a
/// database of SQLite, as caches are, the files that belong to one, such as its journal, and the sources that the
/// command has read.
///
/// A file that is not finished with finish() leaves no trace of what was written, nor does a process that is killed,
/// where the file system has files without a name. Throws CommandError(usage) for what is not replaced, and otherwise
/// Error(io_failed) that names the path and the reason.
class WrittenFile {
 public:
  /// Opens it, so that what cannot be written is refused before anything is computed. `standard_output` must outlive
  /// the object. `read_files`: the sources.
  WrittenFile(const std::filesystem::path& path, std::ostream& standard_output,
              std::vector<std::filesystem::path> read_files = {});
  ~WrittenFile();
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  /// Sticks to the first error; finish() throws it.
  std::ostream& stream();

  /// Puts the file in place. Once only. What is wrong with the standard output is found at the end of the program, as
  /// for every command.
  void finish();

 private:
  class Buffer;

  void open_beside();
  std::string own_path() const;
  void name_partial(const std::function<bool(const std::filesystem::path& name)>& make);
  void refuse_what_is_needed() const;
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_, partial_;  ///< partial_: what the file is called until it is in its place, if anything
  bool is_replaced_ = false;
  std::vector<std::filesystem::path> read_files_;
  int descriptor_ = -1;
  std::unique_ptr<Buffer> buffer_;
  std::ostream own_{nullptr};
  std::ostream* standard_output_ = nullptr;
};

/// Throws CommandError(usage) if the path, or what a symbolic link there leads to, is or would be a file of a database
/// of SQLite that lies beside it, such as its journal.
void refuse_what_belongs_to_a_database(const std::filesystem::path& path);

/// True if a path means the standard output, so that what people read has to go elsewhere.
bool is_standard_output(const std::filesystem::path& path);

}  // namespace hone::tuner
