// CudaTest: a fixture with cuda:0, or a skipped test with the reason.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include <hone/device.h>

#include "runtime/device/cuda/cuda_device.h"

namespace hone {

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    if (cuda_device_count(reason) == 0) GTEST_SKIP() << reason;
    device_ = make_cuda_device(0);
    if (device_->compiler_identity().empty()) GTEST_SKIP() << "NVRTC is not installed";
    stream_ = device_->create_stream();
  }

  void TearDown() override {
    if (!device_) return;
    if (stream_ != nullptr) device_->destroy_stream(stream_);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "a failure was left behind for the caller to find";
  }

  Binary compile(const std::string& source) const {
    return device_->compile({.name = "test", .source = source, .headers = {}, .entries = {}});
  }

  std::unique_ptr<Module> load(const std::string& source, const std::vector<std::string>& entries) const {
    return device_->load(compile(source), entries);
  }

  struct Free {
    std::shared_ptr<Device> device;
    void operator()(void* pointer) const { device->deallocate(pointer); }
  };
  template <class T>
  using Array = std::unique_ptr<T[], Free>;

  template <class T>
  Array<T> allocate(std::size_t count) const {
    return Array<T>(static_cast<T*>(device_->allocate(count * sizeof(T))), Free{device_});
  }

  template <class T>
  std::vector<T> fetch(const Array<T>& array, std::size_t count) const {
    std::vector<T> values(count);
    device_->copy_to_host(values.data(), array.get(), count * sizeof(T), stream_);
    device_->synchronize(stream_);
    return values;
  }

  template <class... Values>
  static Launch launch_of(unsigned blocks, unsigned threads, Values... values) {
    Launch launch;
    launch.grid.x = blocks;
    launch.block.x = threads;
    (launch.arguments.push(values), ...);
    return launch;
  }

  std::shared_ptr<Device> device_;
  Stream stream_ = nullptr;
};

/// Adds `step` to each of n integers.
inline constexpr const char* kAddKernel = R"(extern "C" __global__ void add(int* values, int step, long long n) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < n) values[i] += step;
}
)";

/// Keeps one SM busy for `ns` nanoseconds.
inline constexpr const char* kSpinKernel = R"(__device__ unsigned long long now_ns() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}
extern "C" __global__ void spin(unsigned long long ns) {
  const unsigned long long start = now_ns();
  while (now_ns() - start < ns) {}
}
)";

}  // namespace hone
