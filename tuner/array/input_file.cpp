#include "tuner/array/input_file.h"

#include <fmt/core.h>

#include <hone/error.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "tuner/array/npy.h"
#include "tuner/text/command_error.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

constexpr std::int64_t kReadBytes = std::int64_t{4} << 20;

[[noreturn]] void reject(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::io_failed, fmt::format("cannot read '{}': {}", printable(path.string()), why));
}

std::ifstream open_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    reject(path, error && error != std::errc::no_such_file_or_directory ? error.message() : "there is no such file");
  }
  if (std::filesystem::is_directory(status)) reject(path, "it is a directory; give a .npy or raw file in it");
  if (!std::filesystem::is_regular_file(status)) {
    reject(path, "it is a device or a terminal; give a file, or a pipe");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) reject(path, std::strerror(errno));
  return in;
}

constexpr std::string_view kZipMagic = "PK\x03\x04";

bool begins_with(std::ifstream& in, std::string_view magic) {
  std::string start(magic.size(), '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  const bool found = in.gcount() == static_cast<std::streamsize>(start.size()) && start == magic;
  in.clear();
  in.seekg(0);
  return found;
}

bool is_pipe(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::file_type type = std::filesystem::status(path, ignored).type();
  return type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::socket;
}

/// Sets where `file` can be read from any place: itself, or a copy in memory of what a pipe gives.
void find_place(InputFile& file) {
  const std::filesystem::path path = is_standard_input(file.path) ? "/dev/stdin" : file.path;
  file.place = path;
  if (!is_pipe(path)) return;
  const int descriptor = memfd_create("hone-input", MFD_CLOEXEC);
  if (descriptor < 0) reject(path, std::strerror(errno));
  file.copy = std::shared_ptr<const void>(static_cast<const void*>(&kReadBytes),
                                          [descriptor](const void*) { ::close(descriptor); });
  file.place = fmt::format("/proc/self/fd/{}", descriptor);
  std::ifstream in(path, std::ios::binary);
  std::ofstream out(file.place, std::ios::binary);
  std::vector<char> part(kReadBytes);
  while (in.read(part.data(), kReadBytes) || in.gcount() > 0) out.write(part.data(), in.gcount());
  if (in.bad() || !out.flush()) reject(path, std::strerror(errno));
}

InputFile describe_npy(const std::filesystem::path& path, std::ifstream& in, std::int64_t file_bytes) {
  NpyHeader header;
  try {
    header = read_npy_header(in);
  } catch (const Error& error) {
    reject(path, error.what());
  }
  InputFile file{path, header.dtype, header.elements, header.data_offset,
                 fmt::format("npy, shape {}{}", npy_shape_text(header.shape),
                             header.fortran_order ? ", Fortran order" : ""),
                 header.shape,
                 // Both orders are the same with one extent, or without elements.
                 header.fortran_order && header.shape.size() > 1};
  const std::int64_t data_bytes = file_bytes - header.data_offset;
  if (data_bytes != file.size_bytes()) {
    reject(path, fmt::format("its header promises {} elements of {} ({} bytes), but {} bytes follow: the file is {}",
                             file.elements, info(file.dtype).name, file.size_bytes(), data_bytes,
                             data_bytes < file.size_bytes() ? "truncated; copy or save it again"
                                                            : "not one plain array; save it again"));
  }
  return file;
}

InputFile describe_raw(const std::filesystem::path& path, std::int64_t file_bytes, std::optional<DType> raw_dtype,
                       std::string_view argument) {
  if (!raw_dtype) {
    throw CommandError(ExitCode::usage, fmt::format("'{}' is no .npy file, so its dtype is not known; give --dtype "
                                                    "(f32, bf16, i8, …) for raw little-endian elements",
                                                    printable(path.string())));
  }
  const auto element_bytes = static_cast<std::int64_t>(info(*raw_dtype).size_bytes);
  if (file_bytes % element_bytes != 0) {
    reject(path, fmt::format("its {} bytes are no multiple of the {} bytes of an {} element{}", file_bytes,
                             element_bytes, info(*raw_dtype).name,
                             argument.empty() ? "; is --dtype right, or the file truncated?"
                                              : fmt::format(" of {}; is the file truncated?", argument)));
  }
  return {path, *raw_dtype, file_bytes / element_bytes, 0, "raw", {file_bytes / element_bytes}};
}

}  // namespace

bool is_standard_input(const std::filesystem::path& path) { return path == "-" || path == "/dev/stdin"; }

InputFile open_input(const std::filesystem::path& path, std::optional<DType> raw_dtype, std::string_view argument) {
  InputFile found;
  found.path = path;
  find_place(found);
  std::ifstream in = open_file(found.place);
  std::error_code error;
  const auto file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(found.place, error));
  if (error) reject(path, error.message());
  if (begins_with(in, kZipMagic) && (!raw_dtype || path.extension() == ".npz"))
    reject(path, "it is an archive (.npz) of arrays; save one of them: numpy.save(file, numpy.load(archive)['name'])");
  const bool is_npy = path.extension() == ".npy" || begins_with(in, kNpyMagic);
  InputFile file = is_npy ? describe_npy(path, in, file_bytes) : describe_raw(path, file_bytes, raw_dtype, argument);
  file.place = std::move(found.place);
  file.copy = std::move(found.copy);
  if (!is_npy) return file;
  if (raw_dtype && *raw_dtype != file.dtype) {
    throw CommandError(
        ExitCode::usage,
        fmt::format("'{}' holds {} elements, but {}", printable(path.string()), info(file.dtype).name,
                    argument.empty()
                        ? fmt::format("--dtype says {}; leave --dtype out", info(*raw_dtype).name)
                        : fmt::format("the kernel's argument {} has {}; convert the array, or change the kernel",
                                      argument, info(*raw_dtype).name)));
  }
  return file;
}

void read_elements(const InputFile& file, const std::function<void(std::span<const std::byte> part)>& on_part) {
  const std::int64_t total = file.size_bytes();
  std::ifstream in = open_file(file.place);
  in.seekg(file.data_offset);
  std::vector<char> staging(static_cast<std::size_t>(std::min(total, kReadBytes)));
  for (std::int64_t done = 0; done < total;) {
    const std::int64_t bytes = std::min(total - done, kReadBytes);
    in.read(staging.data(), bytes);
    if (in.gcount() != bytes) {
      reject(file.path, fmt::format("it ended after {} of {} bytes: it became shorter while it was read",
                                    done + in.gcount(), total));
    }
    on_part(std::as_bytes(std::span(staging).first(static_cast<std::size_t>(bytes))));
    done += bytes;
  }
}

DeviceBuffer load_input(const InputFile& file, const std::shared_ptr<Device>& device, Stream stream) {
  // An empty array still needs an address.
  DeviceBuffer buffer(device, static_cast<std::size_t>(std::max<std::int64_t>(file.size_bytes(), 1)));
  std::size_t done = 0;
  read_elements(file, [&](std::span<const std::byte> part) {
    device->copy_to_device(buffer.as<std::byte>() + done, part.data(), part.size(), stream);
    device->synchronize(stream);
    done += part.size();
  });
  return buffer;
}

}  // namespace hone::tuner
