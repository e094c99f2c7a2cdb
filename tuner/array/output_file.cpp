#include "tuner/array/output_file.h"

#include <algorithm>
#include <vector>

#include "tuner/array/npy.h"

namespace hone::tuner {
namespace {

constexpr std::int64_t kWriteBytes = std::int64_t{4} << 20;

}  // namespace

void OutputFile::save(DType dtype, std::span<const std::int64_t> shape, const void* memory, Device& device,
                      Stream stream) {
  std::int64_t left = static_cast<std::int64_t>(info(dtype).size_bytes);
  for (const std::int64_t extent : shape) left *= extent;
  std::ostream& out = file_.stream();
  if (is_npy_) out << make_npy_header(dtype, shape);
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
