// The slow twin of the reduce family: inputs to verify on, and the results in higher precision.
//
// Everything is computed from one period of the input, in time proportional to it, and in long double, which must hold
// every 64-bit integer exactly (x86-64: 64 significand bits; AArch64 Linux: 113).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/reduce_spec.h>
#include <hone/verifier.h>

namespace hone::reduce_reference {

/// The kind that is measured ("uniform", for bool "mixed"), then the awkward kinds: for floats small integers (whose
/// sums are exact), NaN, infinities and cancellation; for integers the extreme values; for products values whose
/// product stays in range; for indices ties. On at least one kind, one element that is missing or read twice shows.
std::span<const std::string_view> input_kinds(const ReduceSpec& spec);

/// A prime: no multiple of any tile. So short that making and reducing it on the CPU some fifty times, which is what
/// verifying a winner takes, costs little next to measuring.
inline constexpr std::int64_t kInputPeriod = 16381;

/// One period of input number `input` (0, for dot also 1) of n elements: min(n, kInputPeriod) of them.
std::vector<std::byte> input_pattern(const ReduceSpec& spec, int input, std::int64_t n, std::string_view kind);

/// Compares `output` (info(spec.op).outputs values of spec.result_dtype()) with the reduction of the patterns, each
/// repeated to n elements. No element may go through more than `chain` combinations.
///
/// With u = 2^-24 or 2^-53 of a floating accumulator (that of f64 for what is finished after an integer one) and
/// γ(k) = k·u ÷ (1 − k·u), sums may be off by γ(chain + roundings of what is done to an element) · Σ|xᵢ|, where xᵢ are
/// the summands (Higham, Accuracy and Stability of Numerical Algorithms, §4.2); the other bounds are beside their
/// formulas in reduce_reference.cpp. Results stored in a narrower type are rounded once more. All else must be equal:
/// what integers accumulate (modulo 2^64), sums of small integers and products of powers of two in floating point,
/// extremes, indices and counts. Of a spec that is_reproducible(), every bit must be that of the canonical tree, and
/// the chain does not matter. "" when right, else what was expected, found and allowed.
std::string verify(const ReduceSpec& spec, std::int64_t n, std::int64_t chain, ArrayBytes patterns,
                   std::span<const std::byte> output);

}  // namespace hone::reduce_reference
