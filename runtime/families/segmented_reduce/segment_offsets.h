// Offsets of segments to measure and verify on: their distributions of lengths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/kernel_family.h>
#include <hone/reduce_spec.h>

namespace hone::segment_offsets {

/// "power_law", the first and what is measured: lengths ℓ with P(ℓ ≥ x) = (1 + x ÷ λ)^−1.5, so that the shortest are
/// empty and the longest thousands of times the mean. "uniform_lengths"; "one_segment", which has all elements;
/// "mostly_empty", where one of 64 has elements.
std::span<const std::string_view> kinds();

/// Lists those with what the reduction is measured on, then its awkward elements in segments of a power law.
std::span<const std::string_view> input_kinds(const ReduceSpec& spec);

/// How many times the mean the longest of so many segments of a power law has.
double longest_of_mean(std::int64_t segments);

/// segments + 1 offsets of `dtype` (i32 or i64), ascending from 0 to `elements`: bytes as they lie in memory. About 3
/// ns per segment. `kind`: of input_kinds().
std::vector<std::byte> make(std::string_view kind, DType dtype, std::int64_t segments, std::int64_t elements);

/// The elements of an input kind: reduce_reference::input_pattern().
std::vector<std::byte> elements(const ReduceSpec& spec, std::int64_t count, std::string_view kind);

/// The offsets in `bytes`, as make() returns them.
class Offsets {
 public:
  Offsets(DType dtype, std::span<const std::byte> bytes) : wide_(dtype == DType::i64), bytes_(bytes) {}

  std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size() / (wide_ ? 8 : 4)); }
  std::int64_t operator[](std::int64_t i) const;

 private:
  bool wide_;
  std::span<const std::byte> bytes_;
};

/// Says what is wrong with offsets into so many elements; "" if nothing is.
std::string fault(const Offsets& offsets, std::int64_t elements);

/// The segments to verify where all of them would take too long: the first, the last, the one that has everything in
/// "one_segment", and some between. Ascending, apart from each other; all where they are few and short.
std::vector<ElementRange> verified(std::int64_t segments, std::int64_t elements);

}  // namespace hone::segment_offsets
