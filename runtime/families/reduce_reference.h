// The slow twin of the reduce family: inputs to verify on, and the results in higher precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/tuned_reduce.h>

namespace hone::reduce_reference {

/// What is measured first ("uniform"), then the awkward kinds: for floats small integers (whose sums are exact), NaN,
/// infinities and cancellation; for integers the extreme values; for products values whose product stays in range.
std::span<const std::string_view> input_kinds(const ReduceSpec& spec);

/// One period of input number `input` (0, for dot also 1) of n elements: min(n, a prime near 2^20) of them.
std::vector<std::byte> input_pattern(const ReduceSpec& spec, int input, std::int64_t n, std::string_view kind);

/// Compares `output` (info(spec.op).outputs values of spec.result_dtype()) with the reduction of the patterns, each
/// repeated to n elements.
///
/// Floating sums may be off by chain · u · Σ|xᵢ|, where xᵢ are the summands and u = 2^-24 or 2^-53 belongs to the
/// accumulator (Higham, Accuracy and Stability of Numerical Algorithms, §4.2: the error of any order of summation in
/// which no element goes through more than `chain` additions), plus the roundings of what is done to an element and to
/// the result. All else must be equal, sums of small integers in floating point included. "" when right, else what was
/// expected, found and allowed.
std::string verify(const ReduceSpec& spec, std::int64_t n, std::int64_t chain,
                   std::span<const std::vector<std::byte>> patterns, std::span<const std::byte> output);

}  // namespace hone::reduce_reference
