// serial_reduce(): reduces as a kernel does (lanes, then a tree) in the accumulator's arithmetic, on purpose with
// faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <hone/tuned_reduce.h>

namespace hone {

/// The fault of a broken kernel in one element.
struct Fault {
  std::optional<std::int64_t> missing = {};
  std::optional<std::int64_t> doubled = {};
};

/// No element goes through more combinations.
std::int64_t serial_chain(std::int64_t n);

/// The result of the patterns repeated to n elements, as bytes of spec.result_dtype().
std::vector<std::byte> serial_reduce(const ReduceSpec& spec, std::int64_t n, ArrayBytes patterns, Fault fault = {});

}  // namespace hone
