#include "src/calls.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "src/given.h"
#include "src/operands.h"

namespace hone::python {
namespace {

hone_reduce_spec spec_of(const ReduceArguments& what, const Array& in, const std::optional<Array>& out = std::nullopt) {
  hone_reduce_spec spec = defaults_of(hone_reduce_spec_init);
  spec.op = what.op;
  spec.dtype = in.dtype;
  spec.accumulator = what.accumulator;
  spec.result = what.dtype;
  spec.nan_policy = what.ignore_nan ? HONE_NAN_IGNORE : HONE_NAN_PROPAGATE;
  spec.numerics = what.numerics;
  // Where the caller names no dtype, that of `out` is asked for.
  if (what.dtype < 0 && out) spec.result = out->dtype;
  return spec;
}

std::int32_t result_dtype(const hone_reduce_spec& spec) {
  const std::int32_t dtype = hone_result_dtype(&spec);
  if (dtype < 0) check(HONE_INVALID_ARGUMENT);
  return dtype;
}

/// The shape with a last axis of two for operations with two results.
Shape with_outputs(Shape shape, std::int32_t op) {
  if (hone_op_outputs(op) == 1) return shape;
  if (shape.ndim == kMaxDims) throw nb::value_error("the result has more than 32 dimensions");
  shape.size[shape.ndim++] = 2;
  return shape;
}

void need_vector(const Array& array, const char* name) {
  if (array.shape.ndim != 1)
    throw nb::value_error(
        (std::string(name) + " has the shape " + text_of(array.shape) + "; one axis is wanted").c_str());
}

/// Raises ValueError where the extreme of no elements is asked for, as NumPy does. The library's would be the largest
/// or the smallest value of the dtype.
void need_elements(std::int32_t op) {
  static const std::array<std::int32_t, 3> extremes{hone_op("min"), hone_op("max"), hone_op("minmax")};
  if (std::find(extremes.begin(), extremes.end(), op) != extremes.end())
    throw nb::value_error((std::string("x has no elements to take the ") + hone_op_name(op) + " of").c_str());
}

/// The order of the axes in which those that are reduced come last.
nb::tuple reduced_last(const Shape& shape, Axes axes) {
  nb::list order;
  for (const bool is_reduced : {false, true})
    for (int i = 0; i < shape.ndim; ++i)
      if (((axes >> i & 1) != 0) == is_reduced) order.append(i);
  return nb::tuple(order);
}

/// The layout of a contiguous array in that order.
Layout rows_of(const Shape& shape, Axes axes) {
  const std::int64_t kept = reduced_shape(shape, axes, false).elements(), reduced = shape.elements() / kept;
  return {Layout::Kind::rows, kept, reduced, 1, reduced};
}

Reorder reorder_of(std::int32_t op) {
  static const std::int32_t argmin = hone_op("argmin"), argmax = hone_op("argmax");
  return op == argmin || op == argmax ? Reorder::between : Reorder::reduced;
}

hone_status launch(hone_session* session, const hone_reduce_spec& spec, const void* in, const Layout& layout, void* out,
                   void* stream) {
  switch (layout.kind) {
    case Layout::Kind::array:
      return hone_reduce(session, &spec, in, layout.reduced, out, stream, nullptr);
    case Layout::Kind::rows:
      return hone_reduce_rows(session, &spec, in, layout.outer, layout.reduced, layout.pitch, out, stream, nullptr);
    case Layout::Kind::columns:
      break;
  }
  return hone_reduce_columns(session, &spec, in, layout.outer, layout.reduced, layout.inner, layout.pitch, out, stream,
                             nullptr);
}

/// The softmax of an array: the library's description of it, but for what the results add.
std::optional<hone_softmax_spec> softmax_spec(const SoftmaxArguments& what, const Array& array, Axes axes) {
  const std::optional<Layout> layout = find_layout(array, axes, Reorder::none);
  if (!layout || (layout->kind == Layout::Kind::columns && layout->inner == 1)) return std::nullopt;
  hone_softmax_spec spec = defaults_of(hone_softmax_spec_init);
  spec.dtype = array.dtype;
  spec.result = what.dtype;
  spec.logarithm = what.is_logarithm ? 1 : 0;
  spec.scale = what.scale;
  spec.numerics = what.numerics;
  spec.outer = layout->outer, spec.reduced = layout->reduced, spec.inner = layout->inner;
  spec.in_pitch = layout->pitch;
  return spec;
}

/// The last two axes as a matrix, those before as a batch of matrices without gaps between them.
std::optional<hone_matrix_spec> matrix_spec(const Array& array) {
  hone_matrix_spec spec = defaults_of(hone_matrix_spec_init);
  const int last = array.shape.ndim - 1;
  spec.element_bytes = hone_dtype_size(array.dtype);
  spec.rows = array.shape.size[last - 1];
  spec.columns = array.shape.size[last];
  const bool is_empty = array.shape.elements() == 0;
  // A pitch of 0 stands for rows without gaps; a stride of 0, that of a broadcast array, is none that kernels take.
  if (!is_empty) spec.in_pitch = spec.rows > 1 ? array.strides[last - 1] : spec.columns;
  const bool is_dense = spec.columns == 1 || array.strides[last] == 1;
  if (!is_empty && (!is_dense || spec.in_pitch < spec.columns)) return std::nullopt;
  std::int64_t stride = spec.rows * spec.in_pitch;
  for (int i = last - 2; i >= 0; --i) {
    const std::int64_t size = array.shape.size[i];
    if (!is_empty && size != 1 && array.strides[i] != stride) return std::nullopt;
    stride *= size;
    spec.batch *= size;
  }
  return spec;
}

Array matrices(nb::handle x) {
  Array in(x, "x");
  if (in.shape.ndim < 2) throw nb::value_error("x has fewer than two axes");
  return in;
}

}  // namespace

nb::object reduce(const ReduceArguments& what, nb::handle x, nb::handle axis, bool keepdims,
                  const CallOptions& options) {
  const std::optional<void*> chosen = chosen_stream(options.stream);
  Array in(x, "x", chosen ? &*chosen : nullptr);
  Session& session = session_for(options.session, in, "x");
  const Axes axes = parse_axes(axis, in.shape.ndim);
  const Shape shape = with_outputs(reduced_shape(in.shape, axes, keepdims), what.op);
  if (in.shape.elements() == 0 && shape.elements() != 0) need_elements(what.op);
  std::optional<Layout> layout = find_layout(in, axes, reorder_of(what.op));
  if (!layout) {
    layout = rows_of(in.shape, axes);
    in = copy_of(in, "x", options, reduced_last(in.shape, axes));
  }
  std::optional<Array> given = given_out(options.out);
  hone_reduce_spec spec = spec_of(what, in, given);
  // A dtype that is given is checked by the call, if there is one.
  if (spec.result < 0 || shape.elements() == 0) spec.result = result_dtype(spec);
  const Array& out = results_of(in, given, shape, spec.result);
  need_contiguous(out, "out");
  void* const stream = chosen ? *chosen : in.stream();
  if (shape.elements() != 0)
    run([&] { return launch(session.get(), spec, elements_of(in), *layout, out.data, stream); });
  return nb::borrow(out.object());
}

nb::object dot(const ReduceArguments& what, nb::handle a, nb::handle b, const CallOptions& options) {
  const std::optional<void*> chosen = chosen_stream(options.stream);
  Array left(a, "a", chosen ? &*chosen : nullptr), right(b, "b", chosen ? &*chosen : nullptr);
  Session& session = session_for(options.session, left, "a");
  need_vector(left, "a");
  need_vector(right, "b");
  if (left.device != right.device) throw nb::value_error("a and b are on different devices");
  if (left.dtype != right.dtype)
    throw nb::type_error(
        (std::string("a has the dtype ") + hone_dtype_name(left.dtype) + ", b " + hone_dtype_name(right.dtype))
            .c_str());
  if (!(left.shape == right.shape))
    throw nb::value_error(("a has the shape " + text_of(left.shape) + ", b " + text_of(right.shape)).c_str());
  make_contiguous(left, "a", options);
  make_contiguous(right, "b", options);
  std::optional<Array> given = given_out(options.out);
  hone_reduce_spec spec = spec_of(what, left, given);
  spec.result = result_dtype(spec);
  const Array& out = results_of(left, given, Shape{}, spec.result);
  void* const stream = chosen ? *chosen : left.stream();
  run([&] {
    return hone_dot(session.get(), &spec, elements_of(left), elements_of(right), left.shape.size[0], out.data, stream,
                    nullptr);
  });
  return nb::borrow(out.object());
}

nb::tuple fused(nb::sequence ops, bool ignore_nan, nb::handle x, const CallOptions& options) {
  const std::optional<void*> chosen = chosen_stream(options.stream);
  Array in(x, "x", chosen ? &*chosen : nullptr);
  Session& session = session_for(options.session, in, "x");
  make_contiguous(in, "x", options);
  std::vector<std::int32_t> numbers;
  std::vector<std::optional<Array>> outs;
  std::vector<void*> pointers;
  const bool has_outs = !options.out.is_none();
  if (has_outs && PyTuple_Check(options.out.ptr()) == 0 && PyList_Check(options.out.ptr()) == 0)
    refuse_given("out", "a tuple of arrays", options.out);
  if (has_outs && nb::len(options.out) != nb::len(ops))
    throw nb::value_error("out: one array for each operation is wanted");
  for (const nb::handle op : ops) {
    const auto number = nb::cast<std::int32_t>(op);
    if (in.shape.elements() == 0) need_elements(number);
    const hone_reduce_spec spec = spec_of({number, -1, -1, ignore_nan}, in);
    const nb::object given = has_outs ? nb::object(options.out[outs.size()]) : nb::none();
    const Array& out =
        results_of(in, outs.emplace_back(given_out(given)), with_outputs(Shape{}, number), result_dtype(spec));
    need_contiguous(out, "out");
    numbers.push_back(number);
    pointers.push_back(out.data);
  }
  void* const stream = chosen ? *chosen : in.stream();
  run([&] {
    return hone_reduce_fused(session.get(), numbers.data(), static_cast<std::int32_t>(numbers.size()), in.dtype,
                             ignore_nan ? HONE_NAN_IGNORE : HONE_NAN_PROPAGATE, elements_of(in), in.shape.elements(),
                             pointers.data(), stream, nullptr);
  });
  nb::list results;
  for (const std::optional<Array>& out : outs) results.append(out->object());
  return nb::tuple(results);
}

nb::object segments(const ReduceArguments& what, nb::handle x, nb::handle offsets, const CallOptions& options) {
  const std::optional<void*> chosen = chosen_stream(options.stream);
  Array in(x, "x", chosen ? &*chosen : nullptr), starts(offsets, "offsets", chosen ? &*chosen : nullptr);
  Session& session = session_for(options.session, in, "x");
  need_vector(in, "x");
  need_vector(starts, "offsets");
  if (in.device != starts.device) throw nb::value_error("x and offsets are on different devices");
  if (starts.shape.size[0] == 0) throw nb::value_error("offsets is empty; n segments have n + 1 offsets");
  make_contiguous(in, "x", options);
  make_contiguous(starts, "offsets", options);
  std::optional<Array> given = given_out(options.out);
  hone_reduce_spec spec = spec_of(what, in, given);
  spec.result = result_dtype(spec);
  Shape shape(1);
  shape.size[0] = starts.shape.size[0] - 1;
  const Array& out = results_of(in, given, with_outputs(shape, what.op), spec.result);
  need_contiguous(out, "out");
  void* const stream = chosen ? *chosen : in.stream();
  if (shape.size[0] != 0)
    run([&] {
      return hone_reduce_segments(session.get(), &spec, elements_of(in), in.shape.size[0], starts.data, starts.dtype,
                                  shape.size[0], out.data, stream, nullptr);
    });
  return nb::borrow(out.object());
}

nb::object softmax(const SoftmaxArguments& what, nb::handle x, nb::handle axis, const CallOptions& options) {
  const std::optional<void*> chosen = chosen_stream(options.stream);
  Array in(x, "x", chosen ? &*chosen : nullptr);
  Session& session = session_for(options.session, in, "x");
  const Axes axes = parse_axes(axis, in.shape.ndim);
  hone_softmax_spec spec =
      described(in, "x", options, [&](const Array& given) { return softmax_spec(what, given, axes); });
  std::optional<Array> given = given_out(options.out);
  if (spec.result < 0) spec.result = given ? given->dtype : in.dtype;
  const Array& out = results_of(in, given, in.shape, spec.result);
  const std::optional<hone_softmax_spec> results = softmax_spec(what, out, axes);
  if (!results || results->outer != spec.outer || results->reduced != spec.reduced || results->inner != spec.inner)
    refuse_strides("out");
  spec.out_pitch = results->in_pitch;
  void* const stream = chosen ? *chosen : in.stream();
  if (in.shape.elements() != 0)
    run([&] { return hone_softmax(session.get(), &spec, in.data, out.data, stream, nullptr); });
  return nb::borrow(out.object());
}

nb::object transpose(nb::handle x, const CallOptions& options) {
  const std::optional<void*> chosen = chosen_stream(options.stream);
  Array in = matrices(x);
  Session& session = session_for(options.session, in, "x");
  hone_matrix_spec spec = described(in, "x", options, matrix_spec);
  Shape shape = in.shape;
  std::swap(shape.size[shape.ndim - 2], shape.size[shape.ndim - 1]);
  std::optional<Array> given = given_out(options.out);
  const Array& out = results_of(in, given, shape, in.dtype);
  const std::optional<hone_matrix_spec> results = matrix_spec(out);
  if (!results) refuse_strides("out");
  spec.out_pitch = results->in_pitch;
  void* const stream = chosen ? *chosen : in.stream();
  if (shape.elements() != 0)
    run([&] { return hone_transpose(session.get(), &spec, in.data, out.data, stream, nullptr); });
  return nb::borrow(out.object());
}

Problem reduce_problem(const ReduceArguments& what, nb::handle x, nb::handle axis) {
  const Array in(x, "x");
  const Axes axes = parse_axes(axis, in.shape.ndim);
  const std::optional<Layout> layout = find_layout(in, axes, reorder_of(what.op));
  if (!layout) refuse_strides("x");
  const hone_reduce_spec spec = spec_of(what, in);
  const std::uint32_t alignment = alignment_of(in.data);
  return problem_of([&](hone_problem** problem) {
    switch (layout->kind) {
      case Layout::Kind::array:
        return hone_problem_reduce(&spec, layout->reduced, alignment, problem);
      case Layout::Kind::rows:
        return hone_problem_reduce_rows(&spec, layout->outer, layout->reduced, layout->pitch, alignment, problem);
      case Layout::Kind::columns:
        break;
    }
    return hone_problem_reduce_columns(&spec, layout->outer, layout->reduced, layout->inner, layout->pitch, alignment,
                                       problem);
  });
}

Problem segments_problem(const ReduceArguments& what, nb::handle x, nb::handle offsets) {
  const Array in(x, "x"), starts(offsets, "offsets");
  need_vector(in, "x");
  need_vector(starts, "offsets");
  const hone_reduce_spec spec = spec_of(what, in);
  return problem_of([&](hone_problem** problem) {
    return hone_problem_reduce_segments(&spec, in.shape.size[0], starts.dtype, starts.shape.size[0] - 1, problem);
  });
}

Problem softmax_problem(const SoftmaxArguments& what, nb::handle x, nb::handle axis) {
  const Array in(x, "x");
  const std::optional<hone_softmax_spec> spec = softmax_spec(what, in, parse_axes(axis, in.shape.ndim));
  if (!spec) refuse_strides("x");
  return problem_of(
      [&](hone_problem** problem) { return hone_problem_softmax(&*spec, alignment_of(in.data), problem); });
}

Problem transpose_problem(nb::handle x) {
  const Array in = matrices(x);
  const std::optional<hone_matrix_spec> spec = matrix_spec(in);
  if (!spec) refuse_strides("x");
  return problem_of(
      [&](hone_problem** problem) { return hone_problem_transpose(&*spec, alignment_of(in.data), 0, problem); });
}

Problem fused_problem(nb::sequence ops, bool ignore_nan, nb::handle x) {
  const Array in(x, "x");
  need_contiguous(in, "x");
  std::vector<std::int32_t> numbers;
  for (const nb::handle op : ops) numbers.push_back(nb::cast<std::int32_t>(op));
  return problem_of([&](hone_problem** problem) {
    return hone_problem_reduce_fused(numbers.data(), static_cast<std::int32_t>(numbers.size()), in.dtype,
                                     ignore_nan ? HONE_NAN_IGNORE : HONE_NAN_PROPAGATE, in.shape.elements(),
                                     alignment_of(in.data), problem);
  });
}

}  // namespace hone::python
