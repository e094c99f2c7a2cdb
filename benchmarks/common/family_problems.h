// family_problems(): a few problems of every built-in family, for studies of the tuner.
#pragma once

#include <vector>

#include <hone/problem.h>

namespace hone::benchmarks {

/// Two or more problems of every built-in family, those of one family next to each other: short and long rows, few and
/// many, wide and narrow elements, in streams. `is_small`: a 64th of the work, for the host device.
std::vector<Problem> family_problems(bool is_small);

}  // namespace hone::benchmarks
