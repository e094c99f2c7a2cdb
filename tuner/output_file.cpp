#include "tuner/output_file.h"

#include <fmt/core.h>
#include <unistd.h>

#include <hone/error.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "tuner/npy.h"
#include "tuner/table.h"

namespace hone::tuner {
namespace {

constexpr std::int64_t kStagingBytes = std::int64_t{4} << 20;

}  // namespace

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)), partial_(path_) {
  partial_ += fmt::format(".partial.{}", ::getpid());
  std::error_code error;
  if (std::filesystem::is_directory(path_, error)) fail(EISDIR);
  errno = 0;
  out_.open(partial_, std::ios::binary | std::ios::trunc);
  if (!out_) fail(errno);
}

OutputFile::~OutputFile() {
  std::error_code ignored;
  if (!partial_.empty()) std::filesystem::remove(partial_, ignored);
}

void OutputFile::fail(int error) const {
  throw Error(ErrorCode::io_failed,
              fmt::format("cannot write '{}': {}; give another --output", printable(path_.string()),
                          std::generic_category().message(error == 0 ? EIO : error)));
}

void OutputFile::save(DType dtype, std::span<const std::int64_t> shape, const void* memory, Device& device,
                      Stream stream) {
  std::int64_t left = static_cast<std::int64_t>(info(dtype).size_bytes);
  for (const std::int64_t extent : shape) left *= extent;
  errno = 0;
  if (is_npy()) out_ << make_npy_header(dtype, shape);
  const auto* from = static_cast<const std::byte*>(memory);
  std::vector<char> staging(static_cast<std::size_t>(std::min(left, kStagingBytes)));
  for (; left > 0 && out_; left -= static_cast<std::int64_t>(staging.size())) {
    staging.resize(static_cast<std::size_t>(std::min(left, kStagingBytes)));
    device.copy_to_host(staging.data(), from, staging.size(), stream);
    device.synchronize(stream);
    out_.write(staging.data(), static_cast<std::streamsize>(staging.size()));
    from += staging.size();
  }
  out_.close();
  if (!out_) fail(errno);
  std::error_code error;
  std::filesystem::rename(partial_, path_, error);
  if (error) fail(error.value());
  partial_.clear();
}

}  // namespace hone::tuner
