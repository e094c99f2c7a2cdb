// scalar_fault(): what is wrong with a number for an argument of a kernel.
#pragma once

#include <string>

#include <hone/kernel_spec.h>

namespace hone {

/// Says why the argument, a scalar or an extent, cannot be `value`, which range it has and what to do; "" if it can.
/// Numbers come as doubles, which hold every integer up to 2^53 - 1: a larger one may have been another before it was
/// rounded, and is none of a 64-bit argument. Floats are rounded, but not to infinity.
std::string scalar_fault(const KernelArgument& argument, double value);

}  // namespace hone
