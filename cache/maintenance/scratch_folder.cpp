#include "cache/maintenance/scratch_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "cache/errors.h"
#include "cache/maintenance/open_file.h"
#include "cache/place.h"
#include "cache/transact.h"

namespace hone::cache {

ScratchFolder::ScratchFolder(const std::filesystem::path& on_behalf_of) {
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / "hone_XXXXXX").native();
  if (error || ::mkdtemp(name.data()) == nullptr) {
    const std::string reason = (error ? error : std::error_code(errno, std::generic_category())).message();
    throw store_error(on_behalf_of, StoreFault::unopenable,
                      "no temporary folder can be made to work in, set TMPDIR to one that can be written: " + reason);
  }
  path_ = name;
  ::chmod(path_.c_str(), S_IRWXU);  // the umask may have taken rights from the owner
}

std::filesystem::path ScratchFolder::copy_of(const std::filesystem::path& path) const {
  std::filesystem::path copy = path_ / "copy.sqlite";
  if (file_exists(absolute_path(path))) replace_file(copy, ReadingFile(path).connection().content());
  return copy;
}

ScratchFolder::~ScratchFolder() {
  try {
    std::filesystem::remove_all(path_);
  } catch (const std::exception&) {
    // It lies among temporary files.
  }
}

}  // namespace hone::cache
