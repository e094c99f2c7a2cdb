// HostKernelTest: from kernel source to results on the host device, for tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <hone/device.h>
#include <hone/error.h>

#include "runtime/device/host/host_device.h"

namespace hone::test {

/// Device memory that holds a vector.
template <class T>
class DeviceVector {
 public:
  DeviceVector(std::shared_ptr<Device> device, const std::vector<T>& values)
      : device_(std::move(device)), count_(values.size()), data_(device_->allocate(count_ * sizeof(T))) {
    device_->copy_to_device(data_, values.data(), count_ * sizeof(T), nullptr);
  }
  ~DeviceVector() { device_->deallocate(data_); }
  DeviceVector(const DeviceVector&) = delete;
  DeviceVector& operator=(const DeviceVector&) = delete;

  T* data() const { return static_cast<T*>(data_); }
  std::vector<T> values() const {
    std::vector<T> result(count_);
    device_->copy_to_host(result.data(), data_, count_ * sizeof(T), nullptr);
    return result;
  }

 private:
  std::shared_ptr<Device> device_;
  std::size_t count_;
  void* data_;
};

struct Shape {
  Dim3 grid{1, 1, 1};
  Dim3 block{32, 1, 1};
  std::uint32_t dynamic_smem_bytes = 0;
  bool dependent_launch = false;
  unsigned cluster_blocks = 1;
  bool cooperative = false;
};

/// A compiled and loaded kernel called `entry`.
class HostKernel {
 public:
  HostKernel(std::shared_ptr<Device> device, const std::string& source, const std::string& entry = "entry",
             std::vector<SourceFile> headers = {})
      : device_(std::move(device)),
        module_(device_->load(device_->compile({"test unit", source, std::move(headers), {entry}}), {entry})) {}

  HostKernel(std::shared_ptr<Device> device, const Binary& binary)
      : device_(std::move(device)), module_(device_->load(binary, {"entry"})) {}

  const Kernel& kernel() const { return module_->kernel(0); }

  template <class... Arguments>
  void launch(const Shape& shape, Arguments... arguments) const {
    Launch launch{.grid = shape.grid, .block = shape.block, .dynamic_smem_bytes = shape.dynamic_smem_bytes,
                  .dependent_launch = shape.dependent_launch, .cluster_blocks = shape.cluster_blocks,
                  .cooperative = shape.cooperative, .arguments = {}};
    (launch.arguments.push(arguments), ...);
    device_->launch(kernel(), launch, nullptr);
  }

  /// The message of the error that the launch ends with.
  template <class... Arguments>
  std::string failure(const Shape& shape, Arguments... arguments) const {
    return failure_of_code(ErrorCode::device_failed, shape, arguments...);
  }
  template <class... Arguments>
  std::string failure_of_code(ErrorCode code, const Shape& shape, Arguments... arguments) const {
    try {
      launch(shape, arguments...);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    return "the launch succeeded";
  }

 private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<Module> module_;
};

/// Runs a wrong kernel, then a right one on the same device; returns the report.
inline std::string report(const std::string& source, const Shape& shape = {.block = {64}},
                          const HostOptions& options = {}) {
  const auto device = make_host_device(options);
  const HostKernel wrong(device, source);
  const DeviceVector<int> out(device, std::vector<int>(1024));
  std::string message = wrong.failure(shape, out.data());
  const HostKernel right(device, R"(
extern "C" __global__ void entry(int* out) {
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = __shfl_xor_sync(0xffffffffu, static_cast<int>(threadIdx.x), 1);
})");
  for (int repeat = 0; repeat < 2; ++repeat) {
    right.launch({.grid = {3}, .block = {64}}, out.data());
    EXPECT_EQ(out.values()[5], 4);
  }
  return message;
}

}  // namespace hone::test
