// RMS norms of rows: the last axis.
#include <string>

#include "src/operands.h"

namespace hone::python {
namespace {

/// The rows of an array along its last axis.
struct Rows {
  std::int64_t count, columns, pitch;

  bool operator==(const Rows&) const = default;
};

std::optional<Rows> rows_of(const Array& array) {
  const std::optional<Layout> layout = find_layout(array, Axes{1} << (array.shape.ndim - 1), Reorder::none);
  if (!layout || layout->kind == Layout::Kind::columns) return std::nullopt;
  return Rows{layout->outer, layout->reduced, layout->pitch};
}

/// Raises ValueError for an array without a last axis.
Array with_rows(nb::handle x, const void* const* stream) {
  Array array(x, "x", stream);
  if (array.shape.ndim == 0) throw nb::value_error("x has no axis: rows are along the last one");
  return array;
}

void need_like(const Array& array, const char* name, const Array& x, const Shape& shape) {
  if (array.device != x.device) throw nb::value_error((std::string(name) + " is on another device than x").c_str());
  if (array.dtype != x.dtype)
    throw nb::type_error(
        (std::string(name) + " has the dtype " + hone_dtype_name(array.dtype) + ", x " + hone_dtype_name(x.dtype))
            .c_str());
  if (!(array.shape == shape))
    throw nb::value_error(
        (std::string(name) + " has the shape " + text_of(array.shape) + "; " + text_of(shape) + " is wanted").c_str());
}

hone_rms_norm_spec spec_of(const Array& in, const Rows& rows, double eps) {
  hone_rms_norm_spec spec = defaults_of(hone_rms_norm_spec_init);
  spec.dtype = in.dtype;
  spec.rows = rows.count;
  spec.columns = rows.columns;
  spec.eps = eps;
  spec.in_pitch = rows.pitch;
  return spec;
}

/// The array for results, whose rows the library writes with one pitch for all.
std::optional<Array> results(const Array& in, nb::handle given, const char* name, Rows& rows) {
  std::optional<Array> out = given_out(given);
  const std::optional<Rows> its = rows_of(results_of(in, out, in.shape, in.dtype));
  if (!its) refuse_strides(name);
  rows = *its;
  return out;
}

}  // namespace

nb::object rms_norm(nb::handle x, const RmsNormArguments& what, const CallOptions& options) {
  const std::optional<void*> chosen = chosen_stream(options.stream);
  const void* const* const given_stream = chosen ? &*chosen : nullptr;
  Array in = with_rows(x, given_stream);
  Session& session = session_for(options.session, in, "x");
  Rows rows = described(in, "x", options, rows_of);
  hone_rms_norm_spec spec = spec_of(in, rows, what.eps);

  std::optional<Array> weight, residual, sum;
  if (!what.weight.is_none()) {
    Shape columns(1);
    columns.size[0] = rows.columns;
    weight.emplace(what.weight, "weight", given_stream);
    need_like(*weight, "weight", in, columns);
    make_contiguous(*weight, "weight", options);
  }
  Rows out_rows{}, sum_rows{};
  if (!what.residual.is_none()) {
    residual.emplace(what.residual, "residual", given_stream);
    need_like(*residual, "residual", in, in.shape);
    if (!(described(*residual, "residual", options, rows_of) == rows))
      throw nb::value_error("x and residual have different strides");
    sum = results(in, what.sum, "sum", sum_rows);
  } else if (!what.sum.is_none()) {
    throw nb::value_error("sum is given, but no residual: the sum would be x");
  }
  const std::optional<Array> out = results(in, options.out, "out", out_rows);
  if (sum && !(sum_rows == out_rows)) throw nb::value_error("out and sum have different strides");
  spec.out_pitch = out_rows.pitch;

  void* const stream = chosen ? *chosen : in.stream();
  if (in.shape.elements() != 0)
    run([&] {
      return hone_rms_norm(session.get(), &spec, in.data, residual ? residual->data : nullptr,
                           weight ? weight->data : nullptr, out->data, sum ? sum->data : nullptr, stream, nullptr);
    });
  if (!sum) return nb::borrow(out->object());
  return nb::make_tuple(nb::borrow(out->object()), nb::borrow(sum->object()));
}

Problem rms_norm_problem(nb::handle x, bool has_weight, bool has_residual) {
  const Array in = with_rows(x, nullptr);
  const std::optional<Rows> rows = rows_of(in);
  if (!rows) refuse_strides("x");
  const hone_rms_norm_spec spec = spec_of(in, *rows, 0);
  return problem_of([&](hone_problem** problem) {
    return hone_problem_rms_norm(&spec, has_weight, has_residual, alignment_of(in.data), problem);
  });
}

}  // namespace hone::python
