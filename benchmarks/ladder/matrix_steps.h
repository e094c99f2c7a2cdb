// The steps of the transposing ladder, from coalesced loads to a padded tile, as data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <hone/kernel.h>

namespace hone::benchmarks {

struct TransposeStep {
  std::string_view name;     ///< of its file, without .cu, and of its kernel
  std::string_view teaches;  ///< what it changes in the step before
};

std::span<const TransposeStep> transpose_steps();

Unit transpose_unit(const TransposeStep& step);

/// The launch that transposes rows × columns floats, at most kMostLadderElements of them.
Launch transpose_launch(const float* in, float* out, std::int64_t rows, std::int64_t columns);

}  // namespace hone::benchmarks
