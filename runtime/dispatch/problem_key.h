// ProblemKey: the problems that share one winner, packed for the lookup of a call.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include <hone/problem.h>

namespace hone {

struct ProblemKey {
  const KernelFamily* family = nullptr;
  std::uint64_t packed = 0;

  explicit ProblemKey(const Problem& problem) : family(problem.family) {
    packed = problem.operation;
    packed = packed << 4 | static_cast<std::uint64_t>(problem.dtype);
    packed = packed << 4 | nibble(problem.accumulator);
    packed = packed << 4 | nibble(problem.result);
    packed = packed << 2 | static_cast<std::uint64_t>(problem.numerics);
    packed = packed << 1 | static_cast<std::uint64_t>(problem.nan);
    packed = packed << 1 | static_cast<std::uint64_t>(problem.launch_context);
    packed = packed << 8 | static_cast<std::uint64_t>(std::countr_zero(problem.alignment));
    for (const int each : size_classes(problem.extents)) packed = packed << 8 | static_cast<std::uint64_t>(each);
  }

  static_assert(kDTypes.size() < 16, "a dtype, or none, is packed into four bits");
  static_assert(kLargestSizeClass < 256, "a size class is packed into eight bits");
  static std::uint64_t nibble(std::optional<DType> dtype) { return dtype ? static_cast<std::uint64_t>(*dtype) : 15; }

  bool operator==(const ProblemKey&) const = default;

  std::uint64_t bits() const { return packed ^ reinterpret_cast<std::uintptr_t>(family); }
};

}  // namespace hone
