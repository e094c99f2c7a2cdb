// The common part of the tests of families.
#pragma once

#include <cstdint>
#include <limits>

namespace hone {

inline constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

}  // namespace hone
