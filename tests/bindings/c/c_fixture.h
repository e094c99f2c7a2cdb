// The fixture of the tests of the C interface: a session on the host device that compiles the first choice at a miss.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <hone/c.h>

namespace hone::test {

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(hone_device_open("host", &device_), HONE_OK) << hone_last_error();
    hone_session_options options;
    ASSERT_EQ(hone_session_options_init(&options, sizeof options), HONE_OK) << hone_last_error();
    options.on_miss = HONE_ON_MISS_HEURISTIC;
    options.cache_path = "";
    options.validate_pointers = 0;
    ASSERT_EQ(hone_session_create(device_, &options, &session_), HONE_OK) << hone_last_error();
  }
  void TearDown() override {
    hone_session_destroy(session_);
    hone_device_close(device_);
  }

  static hone_reduce_spec reduction(const char* op, const char* dtype) {
    hone_reduce_spec spec;
    EXPECT_EQ(hone_reduce_spec_init(&spec, sizeof spec), HONE_OK);
    spec.op = hone_op(op);
    spec.dtype = hone_dtype(dtype);
    return spec;
  }

  /// A text that the library gave.
  static std::string taken(char* text) {
    std::string copy = text;
    hone_free(text);
    return copy;
  }

  hone_device* device_ = nullptr;
  hone_session* session_ = nullptr;
};

inline std::vector<float> counting(std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

}  // namespace hone::test
