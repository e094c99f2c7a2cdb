// OutputFile: an array on its way from device memory into a file, .npy or raw.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>

#include <hone/device.h>
#include <hone/dtype.h>
#include <hone/stream.h>

namespace hone::tuner {

/// Writes beside `path` and puts it into its place when it is complete: nobody ever reads half of it, and what was
/// there stays until then. Names that end in .npy get a header; others are raw little-endian elements.
class OutputFile {
 public:
  /// Opens the file beside it, so that what cannot be written is refused before anything is computed. Throws
  /// Error(io_failed) that names the path and the reason.
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Writes a C-ordered array of `shape` from `memory` through a staging buffer of a few MiB; waits for `stream`. Once
  /// only. Throws Error: io_failed, and unsupported for a dtype that such a file cannot hold.
  void save(DType dtype, std::span<const std::int64_t> shape, const void* memory, Device& device, Stream stream);

 private:
  bool is_npy() const { return path_.extension() == ".npy"; }
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_, partial_;
  std::ofstream out_;
};

}  // namespace hone::tuner
