// What the tests of the families share.
#pragma once

#include <cstdint>
#include <limits>

namespace hone {

inline constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

}  // namespace hone
