// The slow twin of the softmax families: the results in higher precision.
//
// A row is computed from one period of the input, in time proportional to it: in double for what kernels accumulate in
// f32, in long double for f64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <hone/dtype.h>
#include <hone/kernel_family.h>

namespace hone::softmax_reference {

/// The dtypes and the arithmetic of a softmax.
struct Computation {
  DType dtype, result, accumulator;
  double scale = 1;
  bool is_log = false;

  /// The most additions, rescalings included, that one weight goes through.
  std::int64_t chain = 0;
};

/// One row, or column: element i lies at in_first + i · in_stride of the input and has its result at out_first + i ·
/// out_stride of the output.
struct Line {
  std::int64_t elements = 0;
  std::int64_t in_first = 0, in_stride = 1;
  std::int64_t out_first = 0, out_stride = 1;
};

/// Checks the `parts` of an output, which lie in `output` one after the other. line_of(i) is the line that output
/// element i belongs to.
///
/// With u the unit roundoff of the accumulator (2^-24, 2^-53), ε = 4u the error of its exponential function (CUDA C++
/// Programming Guide, Mathematical Functions Appendix: 2 ulp) and dᵢ = |xᵢ − max|·|scale|·log2 e, a weight has a
/// relative error of aᵢ ≤ 3·ln 2·u·dᵢ + ε: half the difference, the exponent's factor and their product are each
/// rounded. A sum of weights is off by Σwᵢ·2aᵢ + γ(chain)·(1 + ε ÷ u) of itself: each addition and each rescaling to a
/// larger maximum rounds, and the distances of an element's rescalings add up to no more than its own (Higham, Accuracy
/// and Stability of Numerical Algorithms, §4.2). A result has both errors and four more roundings, and is 0 where a
/// weight is subnormal: 2^-125 or 2^-1021 at most. The logarithm has 3u·|scale·(xᵢ − max)|, the sum's error, 2u·|log|
/// and the last rounding. Results in a narrower type are rounded once more.
std::string verify(const Computation& computation, std::span<const std::byte> pattern,
                   std::span<const ElementRange> parts, const std::function<Line(std::int64_t)>& line_of,
                   std::span<const std::byte> output);

}  // namespace hone::softmax_reference
