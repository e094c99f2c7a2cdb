#include <hone/reduce_axis.h>

#include "runtime/dispatch/call_checks.h"

namespace hone {
namespace {

Choice launch(Session& session, const Call& call, const ReduceSpec& spec, const void* in, void* out, Stream stream) {
  call.check_problem();
  const Extents& extents = call.problem.extents;
  const bool has_outputs = extents[0] > 0 && extents[2] > 0;
  const bool has_inputs = has_outputs && extents[1] > 0;
  call.check_array("in", in, spec.dtype, has_inputs);
  call.check_array("out", out, spec.result_dtype(), has_outputs);
  if (!has_outputs) return {};
  const std::int64_t results = extents[0] * (call.problem.family == &reduce_rows_family() ? 1 : extents[2]);
  call.check_apart("in", rows_of(call.problem, 0, in), "out",
                   side_by_side(out, results, spec.result_dtype(), info(spec.op).outputs));
  // Without elements nothing is read, and any address will do.
  void* const buffers[] = {has_inputs ? const_cast<void*>(in) : out, out};
  return session.launch(call.problem, buffers, stream);
}

}  // namespace

Choice tuned_reduce_rows(Session& session, const ReduceSpec& spec, const void* in, const RowsShape& shape, void* out,
                         Stream stream) {
  require_known("tuned_reduce_rows", spec);
  return launch(session, {"tuned_reduce_rows", reduce_rows_problem(spec, shape, alignment_of(in))}, spec, in, out,
                stream);
}

Choice tuned_reduce_columns(Session& session, const ReduceSpec& spec, const void* in, const ColumnsShape& shape,
                            void* out, Stream stream) {
  require_known("tuned_reduce_columns", spec);
  return launch(session, {"tuned_reduce_columns", reduce_columns_problem(spec, shape, alignment_of(in))}, spec, in, out,
                stream);
}

}  // namespace hone
