// numpy_reference(): the right results of a kernel as an expression that Python computes with NumPy.
#pragma once

#include <string>

#include <hone/kernel_spec.h>

namespace hone::tuner {

/// A reference that evaluates `expression` in a process of its own: HONE_PYTHON, or the first python3 on PATH, which
/// needs NumPy. The expression sees `np` and, by name, the arguments and extents of `spec`: the arrays that the kernel
/// reads, of one dimension, floats as float64; scalars and extents as numbers. A name that is a word of Python, such as
/// "in", has an underscore behind it. Its value is the array that the kernel writes, of any shape, or a number for all
/// elements; where the kernel writes several, a tuple of them in their order. It is given a minute.
///
/// Calls throw CommandError(input) that begins with `place`, "axpy.toml:10:23: ", for what Python complains about.
KernelReference numpy_reference(const KernelSpec& spec, std::string expression, std::string place);

}  // namespace hone::tuner
