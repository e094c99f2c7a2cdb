// Problems of all built-in families, and devices of all architectures that their units are compiled for.
#pragma once

#include <array>
#include <vector>

#include <hone/device_facts.h>
#include <hone/problem.h>

namespace hone {

/// Compute capabilities, oldest first.
inline constexpr std::array kComputeCapabilities{75, 80, 86, 89, 90, 100, 120};

/// A device of an architecture, as far as families ask when they say what is valid.
DeviceFacts facts_of_architecture(int compute_capability);

/// One or two problems of each family, which differ in dtypes, alignment and width of indices.
std::vector<Problem> sample_problems();

/// Problems of every family at sizes from 1 to 2^31 and of shapes from one row to one column, aligned or not.
std::vector<Problem> problems_of_many_shapes();

}  // namespace hone
