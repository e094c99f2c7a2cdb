// The calls, from Python's arguments to the library's: arrays to pointers, axes to layouts.
#pragma once

#include <cstdint>

#include <nanobind/nanobind.h>

#include "src/session.h"

namespace hone::python {

/// The arguments that all calls take besides their arrays. Handles are borrowed.
struct CallOptions {
  nb::handle out = Py_None;
  nb::handle stream = Py_None;   // the current one of the array's library
  nb::handle session = Py_None;  // the default of the array's device
  bool copy = false;             // strides that no kernel takes: copy the array first
};

struct ReduceArguments {
  std::int32_t op;
  std::int32_t dtype;        // −1: the default
  std::int32_t accumulator;  // likewise
  bool ignore_nan;
  std::int32_t numerics = HONE_NUMERICS_FAST;
};

nb::object reduce(const ReduceArguments& what, nb::handle x, nb::handle axis, bool keepdims,
                  const CallOptions& options);
nb::object dot(const ReduceArguments& what, nb::handle a, nb::handle b, const CallOptions& options);
nb::tuple fused(nb::sequence ops, bool ignore_nan, nb::handle x, const CallOptions& options);
nb::object segments(const ReduceArguments& what, nb::handle x, nb::handle offsets, const CallOptions& options);

struct SoftmaxArguments {
  bool is_logarithm;
  double scale;
  std::int32_t dtype;  // of the results; −1: the default
  std::int32_t numerics;
};
nb::object softmax(const SoftmaxArguments& what, nb::handle x, nb::handle axis, const CallOptions& options);
nb::object transpose(nb::handle x, const CallOptions& options);

/// Arrays that may be None; `sum` is where x + residual goes. Handles are borrowed.
struct RmsNormArguments {
  nb::handle weight, residual, sum;
  double eps;
};

/// The normalised rows; with a residual, a tuple of them and x + residual.
nb::object rms_norm(nb::handle x, const RmsNormArguments& what, const CallOptions& options);

/// The problems that these calls are: what can be tuned ahead.
Problem reduce_problem(const ReduceArguments& what, nb::handle x, nb::handle axis);
Problem segments_problem(const ReduceArguments& what, nb::handle x, nb::handle offsets);
Problem softmax_problem(const SoftmaxArguments& what, nb::handle x, nb::handle axis);
Problem transpose_problem(nb::handle x);
Problem fused_problem(nb::sequence ops, bool ignore_nan, nb::handle x);
Problem rms_norm_problem(nb::handle x, bool has_weight, bool has_residual);

}  // namespace hone::python
