// parts_of_rows(): the parts of an output of rows that are worth verifying.
#pragma once

#include <cstdint>
#include <vector>

#include <hone/verifier.h>

namespace hone {

/// All of a few rows, or the beginning, middle and end of long ones; the first and the last are always among them.
/// Ranges of elements of an array whose rows begin `pitch` elements apart, in ascending order.
std::vector<ElementRange> parts_of_rows(std::int64_t rows, std::int64_t columns, std::int64_t pitch);

}  // namespace hone
