// What outputs hold before a call whose results are checked.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace hone {

/// What outputs hold before the first run and before the second: a NaN of every float, and −1 or the largest of the
/// integers; then a float of −2.9e−16 and an integer far from −1. No result that was not written, or was made of what
/// the output held, is right over both: the small float alone lies within the tolerance of a zero.
inline constexpr std::byte kNanFill{0xFF}, kOtherFill{0xA5};

/// True if the outputs of a run over kNanFill and of one over kOtherFill are the same, but for bytes that neither wrote.
inline bool agree_where_written(const std::vector<std::vector<std::byte>>& over_nan,
                                const std::vector<std::vector<std::byte>>& over_other) {
  const auto agree = [](std::byte nan, std::byte other) {
    return nan == other || (nan == kNanFill && other == kOtherFill);
  };
  return std::ranges::equal(over_nan, over_other, [&](const auto& left, const auto& right) {
    return std::ranges::equal(left, right, agree);
  });
}

/// What is wrong with a call whose results differ over the two.
inline constexpr char kDependsOnOutputs[] = "the results depend on what the outputs held before the call";

/// Follows what is wrong with results that differ from the reference where a call wrote nothing.
inline constexpr char kLeftUnwritten[] = "; some bytes of the outputs were not written";

}  // namespace hone
