#include <hone/segmented_reduce.h>

#include <algorithm>

#include "runtime/dispatch/call_checks.h"
#include "runtime/families/counts.h"

namespace hone {
Choice tuned_reduce_segments(Session& session, const ReduceSpec& spec, const void* in, std::int64_t elements,
                             const void* offsets, DType offset_dtype, std::int64_t segments, void* out, Stream stream) {
  require_known("tuned_reduce_segments", spec);
  const Problem problem = segmented_reduce_problem(spec, offset_dtype, segments, elements);
  const Call call{"tuned_reduce_segments", problem};
  if (elements < 0 || segments < 0 || info(spec.op).inputs != 1) call.check_problem();
  call.check_array("in", in, spec.dtype, elements > 0);
  call.check_array("offsets", offsets, offset_dtype);
  call.check_array("out", out, spec.result_dtype(), segments > 0);
  const ArrayRows results = side_by_side(out, segments, spec.result_dtype(), info(spec.op).outputs);
  call.check_apart("in", side_by_side(in, elements, spec.dtype), "out", results);
  call.check_apart("offsets", side_by_side(offsets, std::min(segments, kMostBytes) + 1, offset_dtype), "out", results);
  // Nothing of an empty array is read or written, so any address will do.
  void* const unused = const_cast<void*>(offsets);
  void* const buffers[] = {elements == 0 ? unused : const_cast<void*>(in), unused, segments == 0 ? unused : out};
  return session.launch(problem, buffers, stream);
}

}  // namespace hone
