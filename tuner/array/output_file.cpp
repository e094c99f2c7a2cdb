#include "tuner/array/output_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "tuner/array/npy.h"
#include "tuner/text/command_error.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

constexpr std::int64_t kWriteBytes = std::int64_t{4} << 20;

/// Refused before the file is made and anything is computed.
bool checked_is_npy(const std::filesystem::path& path, DType dtype) {
  if (path.extension() != ".npy") return false;
  if (info(dtype).npy_name.empty())
    throw CommandError(ExitCode::usage,
                       fmt::format("--output {}: NumPy has no {}, so no .npy file can hold the result; name the output "
                                   "otherwise for raw elements",
                                   printable(path.string()), info(dtype).name));
  return true;
}

}  // namespace

OutputFile::OutputFile(const std::filesystem::path& path, DType dtype, std::ostream& standard_output,
                       std::vector<std::filesystem::path> read_files)
    : dtype_(dtype), is_npy_(checked_is_npy(path, dtype)), file_(path, standard_output, std::move(read_files)) {}

void OutputFile::save(std::span<const std::int64_t> shape, const void* memory, Device& device, Stream stream) {
  std::int64_t left = static_cast<std::int64_t>(info(dtype_).size_bytes);
  for (const std::int64_t extent : shape) left *= extent;
  std::ostream& out = file_.stream();
  if (is_npy_) out << make_npy_header(dtype_, shape);
  const auto* from = static_cast<const std::byte*>(memory);
  std::vector<char> staging(static_cast<std::size_t>(std::min(left, kWriteBytes)));
  for (; left > 0 && out; left -= static_cast<std::int64_t>(staging.size())) {
    staging.resize(static_cast<std::size_t>(std::min(left, kWriteBytes)));
    device.copy_to_host(staging.data(), from, staging.size(), stream);
    device.synchronize(stream);
    out.write(staging.data(), static_cast<std::streamsize>(staging.size()));
    from += staging.size();
  }
  file_.finish();
}

}  // namespace hone::tuner
