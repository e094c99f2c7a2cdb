// FileSizeSignal: a write past the allowed file size is an error, not the end of the program.
#pragma once

#include <csignal>

namespace hone::cache {

/// While one lives, a write of this thread that exceeds RLIMIT_FSIZE (ulimit -f) fails with EFBIG, where SIGXFSZ would
/// end the program. The signal is held back in this thread alone and taken away again; the program's own handling of it
/// stays. They may overlap in any order; each ends in the thread that it began in.
class FileSizeSignal {
 public:
  FileSizeSignal() noexcept;
  ~FileSizeSignal();
  FileSizeSignal(const FileSizeSignal&) = delete;
  FileSizeSignal& operator=(const FileSizeSignal&) = delete;
};

}  // namespace hone::cache
