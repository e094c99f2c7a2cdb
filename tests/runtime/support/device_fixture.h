// DeviceTest: a fixture with the real device that the test program was built for, or a skipped test with the reason.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include <hone/device.h>
#include <hone/error.h>
#include <hone/session.h>
#include <hone/tuned_reduce.h>

#include "tests/support/share.h"

namespace hone {

/// "host" or "cuda:0", from CMake.
extern const char* const kTestDevice;

/// More combinations than an element of the tests' arrays goes through in any policy.
inline constexpr std::int64_t kChain = 100;

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_ = Device::open(kTestDevice);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    if (device_->compiler_identity().empty()) GTEST_SKIP() << "there is no compiler for " << kTestDevice;
  }

  bool is_cuda() const { return device_->facts().kind == "cuda"; }

  /// A GPU runs all cases of a test, the host device every `on_host`-th, since it compiles them one by one; of these
  /// both take the share that is asked for.
  std::size_t step(std::size_t on_host) const { return is_cuda() ? 1 : on_host; }
  bool is_due(std::size_t turn, std::size_t on_host) const { return test::in_share(turn, step(on_host)); }

  /// A session without a file that serves the model's choice: what is tested is the result, not who is fastest.
  static SessionOptions quick() { return {.on_miss = MissPolicy::heuristic, .cache_path = {}}; }

  /// The values in device memory, `offset` elements behind an address that is aligned to 256 bytes.
  template <class T>
  struct Array {
    DeviceBuffer memory;
    T* data = nullptr;
  };
  template <class T>
  Array<T> upload(const std::vector<T>& values, std::size_t offset = 0) const {
    Array<T> array{.memory = DeviceBuffer(device_, (values.size() + offset) * sizeof(T))};
    array.data = array.memory.template as<T>() + offset;
    device_->copy_to_device(array.data, values.data(), values.size() * sizeof(T), nullptr);
    device_->synchronize(nullptr);
    return array;
  }

  template <class T>
  T fetch(const T* from, Stream stream = nullptr) const {
    T value{};
    device_->copy_to_host(&value, from, sizeof(T), stream);
    device_->synchronize(stream);
    return value;
  }

  std::shared_ptr<Device> device_;
};

/// n values of either sign, small enough that no sum of i32 or i64 overflows.
template <class T>
std::vector<T> random_values(std::size_t n, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<T> values(n);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random));
    } else {
      value = static_cast<T>(std::uniform_int_distribution<std::int64_t>(-2000000000, 2000000000)(random));
    }
  }
  return values;
}

}  // namespace hone
