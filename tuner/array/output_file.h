// OutputFile: an array on its way from device memory into a file, .npy or raw.
#pragma once

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <span>

#include <hone/device.h>
#include <hone/dtype.h>
#include <hone/stream.h>

#include "tuner/context/written_file.h"

namespace hone::tuner {

/// Names that end in .npy get a header; others, and the standard output, raw little-endian elements. See WrittenFile for
/// what is written to, and when.
class OutputFile {
 public:
  /// Throws Error(io_failed) that names the path and the reason.
  OutputFile(const std::filesystem::path& path, std::ostream& standard_output)
      : is_npy_(path.extension() == ".npy"), file_(path, standard_output) {}

  /// Writes a C-ordered array of `shape` from `memory` through a staging buffer of a few MiB; waits for `stream`. Once
  /// only. Throws Error: io_failed, and unsupported for a dtype that such a file cannot hold.
  void save(DType dtype, std::span<const std::int64_t> shape, const void* memory, Device& device, Stream stream);

 private:
  bool is_npy_;
  WrittenFile file_;
};

}  // namespace hone::tuner
