// The lines of tests/runtime/families/expected_bits.txt, and the elements that they are the results of.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include <hone/reduce_spec.h>

namespace hone {

struct ExpectedBits {
  ReduceSpec spec;
  std::int64_t n = 0;
  std::vector<std::byte> results;  ///< info(spec.op).outputs of spec.result_dtype()
};

inline std::uint32_t hashed(std::uint32_t i) {
  i = (i ^ i >> 16) * 0x7feb352du;
  i = (i ^ i >> 15) * 0x846ca68bu;
  return i ^ i >> 16;
}

/// element() of expected_bits.py.
inline double expected_bits_element(const ReduceSpec& spec, std::uint32_t i) {
  const std::uint32_t h = hashed(i);
  const double sign = h >> 31 != 0 ? -1 : 1;
  const bool is_narrow = info(spec.dtype).size_bytes == 2;
  if (spec.op == ReduceOp::logsumexp) {
    const double size = spec.dtype == DType::f64 ? 256 : 32;
    const double most = spec.dtype == DType::f16 || spec.dtype == DType::f64 ? -size : size;
    return most + static_cast<double>(h >> 25) / 4 - 31.75 + std::array{0.0, 3.0, -3.0}[(i >> 10) % 3];
  }
  if (spec.op == ReduceOp::product) {
    const int steps = is_narrow ? static_cast<int>(h % 7) - 3 : static_cast<int>(h % 255) - 127;
    return sign * (1 + steps * (is_narrow ? 0x1p-7 : 0x1p-21));
  }
  const int digits = info(spec.dtype).digits - 1;
  std::uint64_t bits = h & 0x7fffff;
  bits = spec.dtype == DType::f64 ? bits << 29 | hashed(~i) >> 3 : bits & ((std::uint64_t{1} << digits) - 1);
  const int exponent = is_narrow ? static_cast<int>(h >> 23 & 15) - 8 : static_cast<int>(h >> 23 & 63) - 32;
  return std::ldexp(sign * (1 + std::ldexp(static_cast<double>(bits), -digits)), exponent);
}

/// Elements `first` … of the array, in memory as kernels read them.
inline std::vector<std::byte> expected_bits_elements(const ReduceSpec& spec, std::int64_t first, std::int64_t count) {
  return with_element_type(spec.dtype, [&]<class T>(T) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * sizeof(T));
    if constexpr (!std::is_same_v<T, bool>) {
      for (std::int64_t i = 0; i < count; ++i) {
        const double x = expected_bits_element(spec, static_cast<std::uint32_t>(first + i));
        T element;
        if constexpr (std::is_class_v<T>) element = T(static_cast<float>(x));
        else element = static_cast<T>(x);
        std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &element, sizeof(T));
      }
    }
    return bytes;
  });
}

/// All lines, of reproducible specs.
inline std::vector<ExpectedBits> read_expected_bits() {
  std::vector<ExpectedBits> lines;
  std::ifstream file(HONE_EXPECTED_BITS);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string op, dtype, value;
    ExpectedBits& expected = lines.emplace_back();
    words >> op >> dtype >> expected.n;
    expected.spec = {.op = parse_reduce_op(op), .dtype = parse_dtype(dtype), .numerics = Numerics::reproducible};
    while (words >> value) {
      const double number = std::strtod(value.c_str(), nullptr);
      const auto add = [&](auto result) {
        const auto* const bytes = reinterpret_cast<const std::byte*>(&result);
        expected.results.insert(expected.results.end(), bytes, bytes + sizeof(result));
      };
      if (expected.spec.result_dtype() == DType::f64) add(number);
      else add(static_cast<float>(number));
    }
  }
  EXPECT_GT(lines.size(), 500u) << HONE_EXPECTED_BITS;
  return lines;
}

}  // namespace hone
