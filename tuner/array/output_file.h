// OutputFile: an array on its way from device memory into a file, .npy or raw.
#pragma once

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <span>
#include <vector>

#include <hone/device.h>
#include <hone/dtype.h>
#include <hone/stream.h>

#include "tuner/context/written_file.h"

namespace hone::tuner {

/// Names that end in .npy get a header; others, and the standard output, raw little-endian elements. See WrittenFile
/// for what is written to, and when.
class OutputFile {
 public:
  /// For an array of `dtype`. Throws CommandError(usage) if a .npy file cannot hold that, and Error(io_failed) that
  /// names the path and the reason.
  /// `read_files`: as WrittenFile has them.
  OutputFile(const std::filesystem::path& path, DType dtype, std::ostream& standard_output,
             std::vector<std::filesystem::path> read_files = {});

  /// Writes a C-ordered array of `shape` from `memory` through a staging buffer of a few MiB; waits for `stream`. Once
  /// only. Throws Error(io_failed).
  void save(std::span<const std::int64_t> shape, const void* memory, Device& device, Stream stream);

 private:
  DType dtype_;
  bool is_npy_;
  WrittenFile file_;
};

}  // namespace hone::tuner
