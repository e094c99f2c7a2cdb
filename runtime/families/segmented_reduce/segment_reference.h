// The reference for segmented reductions: what the arrays hold on each kind of input, and whether results are right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/reduce_spec.h>

namespace hone::segment_reference {

struct Arrays {
  DType offsets;  ///< i32 or i64
  std::int64_t segments, elements;
};

/// Lists that live for ever: lengths of segments with what the reduction measures, then its awkward elements in
/// segments of the first kind of lengths.
std::span<const std::string_view> input_kinds(const ReduceSpec& spec);

/// Of the elements (buffer 0), or of the offsets (1), whole.
std::vector<std::byte> input_pattern(const ReduceSpec& spec, const Arrays& arrays, int buffer, std::string_view kind);

/// What is wrong with the results of the segments that are verified (segment_offsets::verified()), one after the other
/// in `output`; "" when nothing is. `chain`: the most additions that an element goes through.
std::string verify(const ReduceSpec& spec, const Arrays& arrays, std::int64_t chain,
                   std::span<const std::vector<std::byte>> patterns, std::span<const std::byte> output);

}  // namespace hone::segment_reference
