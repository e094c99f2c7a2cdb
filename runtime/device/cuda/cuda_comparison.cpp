#include "runtime/device/cuda/cuda_comparison.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <hone/error.h>

namespace hone {
namespace {

/// `*first` is the largest number before.
constexpr const char* kCompareText = R"cuda(
extern "C" __global__ void hone_first_difference(const unsigned char* found, unsigned long long bytes,
                                                 const unsigned char* expected, unsigned long long period,
                                                 unsigned long long* first) {
  const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < bytes; i += stride) {
    if (found[i] == expected[i % period]) continue;
    atomicMin(first, i);
    break;
  }
}
)cuda";

constexpr unsigned kThreads = 256;
constexpr unsigned kBytesPerThread = 8;
constexpr std::size_t kMostBlocks = 1024;

}  // namespace

std::optional<std::vector<std::size_t>> CudaComparison::first_differences(std::span<const RepeatedBytes> runs,
                                                                          Stream stream) {
  std::size_t bytes = 0;
  for (const RepeatedBytes& run : runs) bytes += run.bytes;
  const std::scoped_lock lock(mutex_);
  if (runs.size() > kMostRuns || !is_ready_for(bytes)) return std::nullopt;

  std::vector<std::uint64_t> first(runs.size());
  const std::size_t first_bytes = first.size() * sizeof(std::uint64_t);
  device_.fill_bytes(first_, 0xff, first_bytes, stream);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].bytes == 0) continue;
    Launch launch;
    launch.block.x = kThreads;
    launch.grid.x = static_cast<unsigned>(
        std::clamp<std::size_t>(runs[i].bytes / (kThreads * kBytesPerThread), 1, kMostBlocks));
    launch.arguments.push(runs[i].found);
    launch.arguments.push(static_cast<unsigned long long>(runs[i].bytes));
    launch.arguments.push(runs[i].expected_on_device);
    launch.arguments.push(static_cast<unsigned long long>(runs[i].expected.size()));
    launch.arguments.push(static_cast<void*>(static_cast<std::uint64_t*>(first_) + i));
    device_.launch(module_->kernel(0), launch, stream);
  }
  device_.copy_to_host(first.data(), first_, first_bytes, stream);
  device_.synchronize(stream);
  std::vector<std::size_t> differences;
  for (std::size_t i = 0; i < runs.size(); ++i)
    differences.push_back(std::min<std::uint64_t>(first[i], runs[i].bytes));
  return differences;
}

bool CudaComparison::is_ready_for(std::size_t bytes) {
  const bool is_time = bytes_left_ < bytes;
  bytes_left_ -= std::min(bytes, bytes_left_);
  if (is_time && !std::exchange(was_tried_, true)) {
    try {
      const std::vector<std::string> entries{"hone_first_difference"};
      first_ = device_.allocate(kMostRuns * sizeof(std::uint64_t));
      const Unit unit{.name = "first difference", .source = kCompareText, .headers = {}, .entries = entries};
      module_ = device_.load(device_.compile(unit), entries);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::device_lost) throw;
    }
  }
  return module_ != nullptr;
}

}  // namespace hone
