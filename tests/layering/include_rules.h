// The include directions of this project.
#pragma once

#include "tests/layering/include_check.h"

namespace hone::layering {

/// The table that docs and reviews refer to. tests/ may include everything and is not in it.
const IncludeRules& house_rules();

}  // namespace hone::layering
