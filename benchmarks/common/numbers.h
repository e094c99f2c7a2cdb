// Numbers of a DType in host memory, as long doubles: every value of every dtype fits one exactly on x86-64.
#pragma once

#include <cstddef>
#include <vector>

#include <hone/dtype.h>

namespace hone::benchmarks {

bool is_floating(DType dtype);

/// Writes the number of `dtype` nearest to `value` (truncated for integers, and for 16-bit floats, whose normal range it
/// must be in).
void encode(DType dtype, double value, std::byte* element);

/// `bytes` as elements of `dtype`. Throws Error(unsupported) for a dtype that this file does not know.
std::vector<long double> decode(DType dtype, const std::vector<std::byte>& bytes);

}  // namespace hone::benchmarks
