// InputFile: an array in a file, .npy or raw, and its way into device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/device.h>
#include <hone/dtype.h>
#include <hone/stream.h>

namespace hone::tuner {

/// Where the elements of an array lie in a file. They are contiguous and little-endian.
struct InputFile {
  std::filesystem::path path;
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  std::int64_t data_offset = 0;  ///< bytes in front of the first element
  std::string layout;            ///< for people: "npy, shape (3, 4)" or "raw"
  std::vector<std::int64_t> shape = {};  ///< the last extent is contiguous, unless fortran_order; raw: one extent
  bool fortran_order = false;            ///< the first extent is contiguous
  std::filesystem::path place = {};      ///< where to read it: `path`, or a copy of what came through a pipe
  std::shared_ptr<const void> copy = {};  ///< keeps that

  std::int64_t size_bytes() const { return elements * static_cast<std::int64_t>(info(dtype).size_bytes); }
};

/// True if a path means the standard input.
bool is_standard_input(const std::filesystem::path& path);

/// Looks at a file: .npy by its name or magic, otherwise raw elements of `raw_dtype`. "-" is the standard input; what
/// comes through a pipe is read to its end and kept in memory. For .npy a `raw_dtype` must agree
/// with the header. Throws Error(io_failed) when the file cannot be read, is malformed or has the wrong length, and
/// CommandError(usage) when the dtype is missing or disagrees. `argument` is the name of the kernel's argument that
/// says the dtype; "": it is the option --dtype.
InputFile open_input(const std::filesystem::path& path, std::optional<DType> raw_dtype, std::string_view argument = {});

/// Hands over the elements in parts of a few MiB, each of whole elements. Throws Error(io_failed) when the file ends
/// early.
void read_elements(const InputFile& file, const std::function<void(std::span<const std::byte> part)>& on_part);

/// Copies the elements into new device memory, through a staging buffer of a few MiB. Waits for `stream`. Throws
/// Error: io_failed when the file ends early, out_of_memory when the array does not fit.
DeviceBuffer load_input(const InputFile& file, const std::shared_ptr<Device>& device, Stream stream);

}  // namespace hone::tuner
