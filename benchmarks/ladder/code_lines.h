// code_lines(): how long the code of a step is.
#pragma once

#include <hone/kernel.h>

namespace hone::benchmarks {

/// The lines of the kernel files that a unit includes, each file once: without empty ones, comments, and directives.
int code_lines(const Unit& unit);

}  // namespace hone::benchmarks
