#include <hone/device.h>

#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/error.h>
#include <hone/nccl_communicator.h>

#include "runtime/device/host/host_device.h"
#ifdef HONE_WITH_CUDA
#include "runtime/device/cuda/cuda_device.h"
#endif

namespace hone {
namespace {

constexpr std::string_view kCudaPrefix = "cuda:";

/// How many CUDA devices there are; `reason` says why where there are none.
int count_cuda_devices(std::string& reason) {
#ifdef HONE_WITH_CUDA
  return cuda_device_count(reason);
#else
  reason = "this Hone was built without the CUDA toolkit";
  return 0;
#endif
}

std::shared_ptr<Device> open_cuda([[maybe_unused]] int ordinal) {
#ifdef HONE_WITH_CUDA
  return make_cuda_device(ordinal);
#else
  throw Error(ErrorCode::unsupported, cuda_unavailable_reason());
#endif
}

/// N of "cuda:N", or -1.
int parse_ordinal(std::string_view name) {
  if (!name.starts_with(kCudaPrefix)) return -1;
  const std::string_view digits = name.substr(kCudaPrefix.size());
  int ordinal = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  return error == std::errc{} && end == digits.data() + digits.size() ? ordinal : -1;
}

}  // namespace

#ifndef HONE_WITH_CUDA
std::unique_ptr<Communicator> nccl_communicator(ncclComm*, CommunicatorOptions) {
  throw Error(ErrorCode::unsupported, "NCCL needs CUDA, and this Hone was built without the CUDA toolkit");
}
#endif

std::vector<std::string> device_names() {
  std::string reason;
  std::vector<std::string> names;
  for (int ordinal = 0; ordinal < count_cuda_devices(reason); ++ordinal)
    names.push_back(fmt::format("{}{}", kCudaPrefix, ordinal));
  names.emplace_back("host");
  return names;
}

std::string cuda_unavailable_reason() {
  std::string reason;
  return count_cuda_devices(reason) > 0 ? "" : reason;
}

void require_energy_counter(const Device& device) {
  if (const std::string missing = device.energy().missing; !missing.empty())
    throw Error(ErrorCode::unsupported,
                fmt::format("the winner with the least energy was asked for, but the energy of {} cannot be measured: "
                            "{}; tune by time, or on another device",
                            device.name(), missing));
}

std::shared_ptr<Device> Device::open(std::string_view name) {
  std::string reason;
  const int cuda_devices = count_cuda_devices(reason);
  if (name == "host" || (name == "auto" && cuda_devices == 0)) return make_host_device();
  if (name == "auto") return open_cuda(0);

  const int ordinal = parse_ordinal(name);
  if (ordinal >= 0 && ordinal < cuda_devices) return open_cuda(ordinal);
  if (ordinal >= 0 && cuda_devices == 0)
    throw Error(ErrorCode::unsupported, fmt::format("device '{}' cannot be opened: {}", name, reason));
  throw Error(ErrorCode::not_found, fmt::format("there is no device '{}'; this machine has: {} (or 'auto')", name,
                                                fmt::join(device_names(), ", ")));
}

std::size_t first_difference(const std::byte* found, std::size_t bytes, std::span<const std::byte> expected) {
  const std::size_t period = std::min(expected.size(), bytes);
  // Two calls of memcmp find out that all is right: in a debug build, a loop over the bytes takes longer than a small
  // kernel.
  if (bytes == 0) return 0;
  const bool is_begun = std::memcmp(found, expected.data(), period) == 0;
  if (is_begun && std::memcmp(found, found + period, bytes - period) == 0) return bytes;
  for (std::size_t at = 0; at < bytes; ++at)
    if (found[at] != expected[at % period]) return at;
  return bytes;
}

std::vector<std::size_t> Device::first_differences(std::span<const RepeatedBytes> runs, Stream stream) {
  std::vector<std::size_t> differences;
  std::vector<std::byte> found;
  for (const RepeatedBytes& run : runs) {
    found.resize(run.bytes);
    copy_to_host(found.data(), run.found, run.bytes, stream);
    synchronize(stream);
    differences.push_back(first_difference(found.data(), run.bytes, run.expected));
  }
  return differences;
}

std::string Device::memory_owner(const void*) const { return fmt::format("{} ({})", facts().name, name()); }

DeviceBuffer::DeviceBuffer(std::shared_ptr<Device> device, std::size_t bytes)
    : device_(std::move(device)), bytes_(bytes) {
  if (!device_)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a DeviceBuffer of {} bytes was given no device; open one with Device::open()", bytes));
  data_ = device_->allocate(bytes);
}

void DeviceBuffer::copy_from(const void* values) const {
  device_->copy_to_device(data_, values, bytes_, nullptr);
  device_->synchronize(nullptr);
}

void DeviceBuffer::copy_to(void* values, std::size_t bytes, Stream stream) const {
  if (!device_) return;
  device_->copy_to_host(values, data_, bytes, stream);
  device_->synchronize(stream);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : device_(std::move(other.device_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_) device_->deallocate(data_);
}

}  // namespace hone
