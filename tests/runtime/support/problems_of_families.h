// problems_of_every_family(): calls of each built-in family, for tests of what holds for all of them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include <hone/sdk/family_table.h>

namespace hone {

/// A call of the family with these rows and columns (as many elements where it has one extent, two matrices where it
/// has three) whose arrays have `alignment`; `turn` says which of its operations and dtypes. nullopt where it has none
/// such.
inline std::optional<Problem> problem_of_family(const FamilyRow& row, std::int64_t rows, std::int64_t columns,
                                                std::uint32_t alignment, std::size_t turn) {
  const KernelFamily& family = row.family();
  const std::size_t extents = family.extent_names().size();
  const std::size_t operations = family.operations().size();
  Problem problem{.family = &family, .alignment = alignment};
  if (extents == 1) problem.extents = {rows * columns, 1, 1};
  else if (extents == 2) problem.extents = {rows, columns, 1};
  else problem.extents = {2, rows, columns};
  for (std::size_t i = 0; i < operations * kDTypes.size(); ++i) {
    const std::size_t choice = turn * 7 + i;
    problem.operation = static_cast<std::uint8_t>(choice % operations);
    problem.dtype = kDTypes[choice % kDTypes.size()].dtype;
    if (info(problem.dtype).size_bytes > alignment) continue;
    const Problem called = row.as_called ? row.as_called(problem) : problem;
    if (called.family->refuse(called).empty()) return called;
  }
  return std::nullopt;
}

/// One of each family for every shape and alignment.
inline std::vector<Problem> problems_of_every_family(std::initializer_list<std::array<std::int64_t, 2>> shapes,
                                                     std::initializer_list<std::uint32_t> alignments) {
  std::vector<Problem> problems;
  std::size_t turn = 0;
  for (const FamilyRow& row : built_in_families())
    for (const auto [rows, columns] : shapes)
      for (const std::uint32_t alignment : alignments)
        if (const auto problem = problem_of_family(row, rows, columns, alignment, turn++)) problems.push_back(*problem);
  return problems;
}

}  // namespace hone
