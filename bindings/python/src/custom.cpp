// Reductions by expressions.
#include "src/custom.h"

#include <nanobind/stl/string.h>

#include "src/operands.h"

namespace hone::python {

Reduction::Reduction(const Expressions& given, std::int32_t accumulator, std::int32_t result, double tolerance)
    : result_(result < 0 ? accumulator : result) {
  hone_reduction_source source;
  check(hone_reduction_source_init(&source, sizeof source));
  source.name = given.name.c_str();
  source.map = given.map.c_str();
  source.combine = given.combine.c_str();
  source.identity = given.identity.c_str();
  source.finish = given.finish.c_str();
  source.declarations = given.declarations.c_str();
  source.accumulator = accumulator;
  source.result = result;
  source.relative_tolerance = tolerance;
  check(hone_reduction_create(&source, &reduction_));
}

nb::object Reduction::operator()(nb::handle x, const CallOptions& options) const {
  const std::optional<void*> chosen = chosen_stream(options.stream);
  Array in(x, "x", chosen ? &*chosen : nullptr);
  Session& session = session_for(options.session, in, "x");
  make_contiguous(in, "x", options);
  std::optional<Array> given = given_out(options.out);
  const Array& out = results_of(in, given, Shape{}, result_);
  void* const stream = chosen ? *chosen : in.stream();
  run([&] {
    return hone_reduce_custom(session.get(), reduction_, in.dtype, elements_of(in), in.shape.elements(), out.data,
                              stream, nullptr);
  });
  return nb::borrow(out.object());
}

Problem Reduction::problem(nb::handle x) const {
  const Array in(x, "x");
  need_contiguous(in, "x");
  return problem_of([&](hone_problem** problem) {
    return hone_problem_reduce_custom(reduction_, in.dtype, in.shape.elements(), alignment_of(in.data), problem);
  });
}

}  // namespace hone::python
