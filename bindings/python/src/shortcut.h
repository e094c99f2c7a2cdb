// Shortcut: a function of the package that runs without its Python code for the arguments that most calls have.
#pragma once

#include <cstdint>

#include "src/calls.h"

namespace hone::python {

/// Reads out, stream, session or copy, which were given by name. False: another name, or a value that has to be judged.
/// Names in calls are interned, so that those which are equal are the same object.
bool read_option(PyObject* name, PyObject* value, CallOptions& options);

/// Callables that are `function`, but for the time a call takes: one with an array and some of axis, keepdims (of a
/// reduction), out, stream, session and copy is made at once, any other by `function`, which also raises what a wrong
/// argument raises. They have a `__dict__`, where functools.update_wrapper() puts the name, the docstring and the
/// function itself.
nb::object reduce_shortcut(nb::object function, std::int32_t op);
nb::object softmax_shortcut(nb::object function, bool is_logarithm);

}  // namespace hone::python
