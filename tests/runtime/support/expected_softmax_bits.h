// The lines of tests/runtime/families/expected_softmax_bits.txt, which a second program wrote.
#pragma once

#include <array>

#include <hone/softmax.h>

#include "tests/runtime/support/expected_bits.h"

namespace hone {

/// A row of the n first elements of expected_bits_element(), and three of its results.
struct ExpectedSoftmaxBits {
  SoftmaxSpec spec;
  bool is_log = false;
  std::int64_t n = 0;
  std::vector<std::byte> results;  ///< of elements 0, n ÷ 3 and n − 1, of spec.result_dtype()

  std::array<std::int64_t, 3> places() const { return {0, n / 3, n - 1}; }
  std::vector<std::byte> elements() const {
    return expected_bits_elements({.op = ReduceOp::logsumexp, .dtype = spec.dtype}, 0, n);
  }
};

inline std::vector<ExpectedSoftmaxBits> read_expected_softmax_bits() {
  std::vector<ExpectedSoftmaxBits> lines;
  std::ifstream file(HONE_EXPECTED_SOFTMAX_BITS);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string op, dtype, result, value;
    ExpectedSoftmaxBits& expected = lines.emplace_back();
    expected.spec.numerics = Numerics::reproducible;
    words >> op >> dtype >> result >> expected.n >> expected.spec.scale;
    expected.is_log = op == "log_softmax";
    expected.spec.dtype = parse_dtype(dtype);
    expected.spec.result = parse_dtype(result);
    while (words >> value)
      with_element_type(*expected.spec.result, [&]<class T>(T) {
        const double number = std::strtod(value.c_str(), nullptr);
        T element;
        if constexpr (std::is_class_v<T>) element = T(static_cast<float>(number));
        else element = static_cast<T>(number);
        const auto* const bytes = reinterpret_cast<const std::byte*>(&element);
        expected.results.insert(expected.results.end(), bytes, bytes + sizeof(T));
      });
  }
  EXPECT_EQ(lines.size(), 360u) << HONE_EXPECTED_SOFTMAX_BITS;
  return lines;
}

}  // namespace hone
