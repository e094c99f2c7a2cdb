// built_in_families(): the kernel families that Hone has, in the one table that commands, messages and tests read.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string_view>

#include <hone/kernel_family.h>

namespace hone {

/// The problems of a family that `hone tune --preset` tunes, in the words of --op, --dtype and --size.
struct PresetPart {
  std::string_view preset = {};  ///< "quick", "standard" or "full"; "": none
  std::string_view operations = {}, dtypes = {}, shapes = {};
};

/// A built-in family, and what is usually asked of it.
struct FamilyRow {
  std::function<const KernelFamily&()> family;
  std::string_view operations;  ///< what hone tune takes where --op says nothing
  std::string_view dtypes;      ///< likewise of --dtype
  std::string_view shapes;      ///< likewise of --size

  /// The problem as a call asks it whose arrays have this alignment: where a row begins decides, too, and rows of 7
  /// floats begin anywhere. nullptr: the same problem.
  Problem (*as_called)(const Problem& problem) = nullptr;

  /// Beside what the presets' own files list, with a weight of 1.
  std::array<PresetPart, 3> presets = {};
};

using Families = std::span<const FamilyRow>;

/// The first is what a command means that names none.
Families built_in_families();

/// True if it is one of them: `hone tune` knows its name, and Hone's own tests verify it.
bool is_built_in(const KernelFamily& family);

}  // namespace hone
