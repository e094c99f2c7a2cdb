// Numbers of a DType in host memory, as long doubles: every value of every dtype fits one exactly on x86-64.
#pragma once

#include <cstddef>
#include <vector>

#include <hone/dtype.h>

namespace hone::benchmarks {

/// Writes `value` as an element of the floating `dtype`, rounded.
void encode(DType dtype, float value, std::byte* element);

/// `bytes` as elements of `dtype`.
std::vector<long double> decode(DType dtype, const std::vector<std::byte>& bytes);

}  // namespace hone::benchmarks
