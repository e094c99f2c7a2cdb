// The slow twin of the reduce family: inputs to verify on, and the result in higher precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/dtype.h>
#include <hone/tuned_reduce.h>

namespace hone::reduce_reference {

/// "uniform" first; then, for floats, small integers (whose sums are exact), NaN, infinities and cancellation; for integers the extreme values.
std::span<const std::string_view> input_kinds(DType dtype);

/// One period of an input of n elements: min(n, a prime near 2^20) of them.
std::vector<std::byte> input_pattern(DType dtype, std::int64_t n, std::string_view kind);

/// Compares `output` with the reduction of the pattern, repeated to n elements. Sums of floats may be off by
/// chain · u · Σ|x|, u = 2^-24 or 2^-53 (Higham, Accuracy and Stability of Numerical Algorithms, §4.2: the error of any
/// order of summation in which no element goes through more than `chain` additions), plus one rounding of the result.
/// All else must be equal, sums of small integers in floating point included. "" when right, else what was expected, found and allowed.
std::string verify(ReduceOp op, DType dtype, std::int64_t n, std::int64_t chain, std::span<const std::byte> pattern,
                   std::span<const std::byte> output);

}  // namespace hone::reduce_reference
