#include "tuner/input_file.h"

#include <fmt/core.h>

#include <hone/error.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <vector>

#include "tuner/command_error.h"
#include "tuner/npy.h"
#include "tuner/table.h"

namespace hone::tuner {
namespace {

constexpr std::int64_t kStagingBytes = std::int64_t{4} << 20;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::io_failed, fmt::format("cannot read '{}': {}", printable(path.string()), why));
}

std::ifstream open_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    refuse(path, error && error != std::errc::no_such_file_or_directory ? error.message() : "there is no such file");
  }
  if (std::filesystem::is_directory(status)) refuse(path, "it is a directory; give a .npy or raw file in it");
  if (!std::filesystem::is_regular_file(status)) {
    refuse(path, "it is a pipe or a device; write the data to a regular file first");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse(path, std::strerror(errno));
  return in;
}

bool begins_with_npy_magic(std::ifstream& in) {
  std::string start(kNpyMagic.size(), '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  const bool found = in.gcount() == static_cast<std::streamsize>(start.size()) && start == kNpyMagic;
  in.clear();
  in.seekg(0);
  return found;
}

InputFile describe_npy(const std::filesystem::path& path, std::ifstream& in, std::int64_t file_bytes) {
  NpyHeader header;
  try {
    header = read_npy_header(in);
  } catch (const Error& error) {
    refuse(path, error.what());
  }
  InputFile file{path, header.dtype, header.elements, header.data_offset,
                 fmt::format("npy, shape {}{}", npy_shape_text(header.shape),
                             header.fortran_order ? ", Fortran order" : ""),
                 header.shape,
                 // Of one extent, or without elements, both orders are the same.
                 header.fortran_order && header.shape.size() > 1};
  const std::int64_t data_bytes = file_bytes - header.data_offset;
  if (data_bytes != file.size_bytes()) {
    refuse(path, fmt::format("its header promises {} elements of {} ({} bytes), but {} bytes follow: the file is {}",
                             file.elements, info(file.dtype).name, file.size_bytes(), data_bytes,
                             data_bytes < file.size_bytes() ? "truncated; copy or save it again"
                                                            : "not one plain array; save it again"));
  }
  return file;
}

InputFile describe_raw(const std::filesystem::path& path, std::int64_t file_bytes, std::optional<DType> raw_dtype) {
  if (!raw_dtype) {
    throw CommandError(ExitCode::usage, fmt::format("'{}' is no .npy file, so its dtype is not known; give --dtype "
                                                    "(f32, bf16, i8, …) for raw little-endian elements",
                                                    printable(path.string())));
  }
  const auto element_bytes = static_cast<std::int64_t>(info(*raw_dtype).size_bytes);
  if (file_bytes % element_bytes != 0) {
    refuse(path, fmt::format("its {} bytes are no multiple of the {} bytes of an {} element; is --dtype right, or the "
                             "file truncated?",
                             file_bytes, element_bytes, info(*raw_dtype).name));
  }
  return {path, *raw_dtype, file_bytes / element_bytes, 0, "raw", {file_bytes / element_bytes}};
}

}  // namespace

InputFile open_input(const std::filesystem::path& path, std::optional<DType> raw_dtype) {
  std::ifstream in = open_file(path);
  std::error_code error;
  const auto file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (error) refuse(path, error.message());
  if (path.extension() != ".npy" && !begins_with_npy_magic(in)) return describe_raw(path, file_bytes, raw_dtype);
  InputFile file = describe_npy(path, in, file_bytes);
  if (raw_dtype && *raw_dtype != file.dtype) {
    throw CommandError(ExitCode::usage,
                       fmt::format("'{}' holds {} elements, but --dtype says {}; leave --dtype out",
                                   printable(path.string()), info(file.dtype).name, info(*raw_dtype).name));
  }
  return file;
}

DeviceBuffer load_input(const InputFile& file, const std::shared_ptr<Device>& device, Stream stream) {
  const std::int64_t total = file.size_bytes();
  // An empty array still needs an address.
  DeviceBuffer buffer(device, static_cast<std::size_t>(std::max<std::int64_t>(total, 1)));
  std::ifstream in = open_file(file.path);
  in.seekg(file.data_offset);
  std::vector<char> staging(static_cast<std::size_t>(std::min(total, kStagingBytes)));
  for (std::int64_t done = 0; done < total;) {
    const std::int64_t bytes = std::min(total - done, kStagingBytes);
    in.read(staging.data(), bytes);
    if (in.gcount() != bytes) {
      refuse(file.path, fmt::format("it ended after {} of {} bytes: it became shorter while it was read",
                                    done + in.gcount(), total));
    }
    device->copy_to_device(buffer.as<std::byte>() + done, staging.data(), static_cast<std::size_t>(bytes), stream);
    device->synchronize(stream);
    done += bytes;
  }
  return buffer;
}

}  // namespace hone::tuner
