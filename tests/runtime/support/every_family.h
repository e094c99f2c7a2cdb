// Problems of all built-in families, and devices of all architectures that their units are compiled for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <hone/device_facts.h>
#include <hone/problem.h>
#include <hone/sdk/family_table.h>

namespace hone {

/// Compute capabilities, oldest first.
inline constexpr std::array kComputeCapabilities{75, 80, 86, 89, 90, 100, 120};

/// A device of an architecture, as far as families ask when they say what is valid.
DeviceFacts facts_of_architecture(int compute_capability);

/// A matrix and the alignment of all arrays of a call. A family with one extent takes as many elements, one with three
/// takes two matrices.
struct SampleShape {
  std::int64_t rows, columns;
  std::uint32_t alignment;
};

/// A call of the family with this shape; `turn` says which of its operations and dtypes. nullopt where the family
/// refuses all of them.
std::optional<Problem> problem_of_family(const FamilyRow& row, const SampleShape& shape, std::size_t turn);

/// A call of each family of the table for every shape, in operations and dtypes that differ from call to call.
std::vector<Problem> problems_of_every_family(const std::vector<SampleShape>& shapes);

/// A few problems of each family, custom and fused reductions included, which differ in operations, dtypes, alignment
/// and width of indices.
std::vector<Problem> sample_problems();

/// Problems of every family at sizes from 100 to 2^31 and of shapes from one row to one column, aligned or not.
std::vector<Problem> problems_of_many_shapes();

}  // namespace hone
