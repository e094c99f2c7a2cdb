// The kernel families that are built in: the one table by which commands, campaign files and rows of caches are read.
#pragma once

#include <span>
#include <string_view>

#include <hone/kernel_family.h>

namespace hone::tuner {

struct FamilyRow {
  const KernelFamily& (*family)();
  std::string_view operations;  ///< what hone tune takes where --op says nothing
  std::string_view dtypes;      ///< likewise of --dtype
  std::string_view shapes;      ///< likewise of --size

  /// The problem as a call asks it whose arrays have this alignment: where a row begins decides, too, and rows of 7
  /// floats begin anywhere. nullptr: the same problem.
  Problem (*as_called)(const Problem& problem) = nullptr;
};

using Families = std::span<const FamilyRow>;

/// The first is what a command means that names none.
Families built_in_families();

/// nullptr where there is none of that name.
const FamilyRow* find_family(std::string_view name, Families families = built_in_families());

/// Throws CommandError(usage) that lists the known names and suggests the one that was meant.
const FamilyRow& parse_family(std::string_view name, Families families = built_in_families());

}  // namespace hone::tuner
