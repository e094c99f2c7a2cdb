#include <hone/transpose.h>

#include <algorithm>

#include "runtime/dispatch/moved_arrays.h"

namespace hone {

Choice tuned_transpose(Session& session, const TransposeSpec& spec, const void* in, void* out, Stream stream) {
  if (is_empty("tuned_transpose", spec.element_bytes, {spec.batch, spec.rows, spec.columns})) return {};
  const bool in_place = in == out;
  const Problem problem = transpose_problem(spec, std::min(alignment_of(in), alignment_of(out)), in_place);
  const Call call{"tuned_transpose", problem};
  if (in && in_place && (spec.rows != spec.columns || spec.input_pitch() != spec.output_pitch()))
    call.refuse("'out' is 'in', but only square matrices at equal pitches can be transposed in place");
  check_arrays(call, in, out);
  if (!in_place) check_apart(call, in, out);
  void* const buffers[] = {const_cast<void*>(in), out};
  return session.launch(problem, buffers, stream);
}

}  // namespace hone
