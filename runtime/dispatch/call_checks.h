// What every tuned_…() call checks before it looks anything up: only what costs nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <hone/tuned_reduce.h>

namespace hone {

/// Values that were cast from elsewhere may name nothing. Throws Error(invalid_argument).
void require_known(std::string_view function, DType dtype);
void require_known(std::string_view function, const ReduceSpec& spec);

/// Why the address cannot be that of elements of `dtype`; "" if it can.
std::string misalignment(std::string_view name, const void* pointer, DType dtype);

/// The rows of an array, in bytes.
struct ArrayRows {
  const void* first;
  std::int64_t row_bytes, pitch_bytes, rows;
};

/// Whether two arrays have bytes in common. Rows of one may lie between those of the other.
bool rows_overlap(const ArrayRows& a, const ArrayRows& b);

}  // namespace hone
