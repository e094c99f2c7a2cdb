// The words that name a built-in kernel family: on the command line, in campaign files and in rows of caches.
#pragma once

#include <string_view>

#include <hone/sdk/family_table.h>

namespace hone::tuner {

/// nullptr where there is none of that name.
const FamilyRow* find_family(std::string_view name, Families families = built_in_families());

/// A name that ends in .toml or .json is the path of a kernel file (kernel_spec_file.h). Throws CommandError: usage
/// that lists the known names and suggests the one that was meant, input for a kernel file that is none.
const FamilyRow& parse_family(std::string_view name, Families families = built_in_families());

}  // namespace hone::tuner
