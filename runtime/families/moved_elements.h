// What the families have in common that only move elements: dtypes by size, inputs, and exact verification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <hone/kernel_family.h>

namespace hone::moved {

/// Elements of one size are all moved alike: the unsigned integer of `bytes`, 1, 2, 4 or 8.
DType dtype_of_size(std::size_t bytes);

/// Why elements cannot be `dtype` ("" if they can): only the dtypes of dtype_of_size() are asked for.
std::string refuse_dtype(std::string_view family, DType dtype);

/// The C++ type of elements in kernel source: as large as `dtype`, or twice that for `pairs` of it, which lie at
/// multiples of `alignment` bytes.
std::string element_type(DType dtype, bool pairs, std::uint32_t alignment);

/// The pitches of a problem, in elements; those of 0 are the length of a row of the input or of the output.
Pitches pitches_of(const Problem& problem, std::int64_t in_row, std::int64_t out_row);

/// Random elements, the same for every call; one period, of a prime length.
std::vector<std::byte> input_pattern(std::int64_t elements, DType dtype);

/// Parts of a large array that are worth checking: both ends and pieces in between, spread at random; all of a small
/// one.
std::vector<ElementRange> spread_parts(std::int64_t elements);

/// Compares the `parts` of an output, one after the other in `found`, with the input that `pattern` is repeated in.
/// `source_of` gives the index of the input's element that belongs at an index of the output; a negative one belongs to
/// nobody and may be anything. "" when right.
std::string verify(const std::vector<ElementRange>& parts, const std::vector<std::byte>& found,
                   const std::vector<std::byte>& pattern, std::size_t element_bytes,
                   const std::function<std::int64_t(std::int64_t)>& source_of);

}  // namespace hone::moved
