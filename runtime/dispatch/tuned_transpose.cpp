#include <hone/transpose.h>

#include "runtime/dispatch/moved_arrays.h"

namespace hone {

Choice tuned_transpose(Session& session, const TransposeSpec& spec, const void* in, void* out, Stream stream) {
  const MovedArrays arrays{.function = "tuned_transpose", .element_bytes = spec.element_bytes, .in = in, .out = out};
  if (is_empty(arrays, spec.batch, spec.rows, spec.columns)) return {};
  arrays.check();
  const bool in_place = in == out;
  if (in_place && (spec.rows != spec.columns || spec.input_pitch() != spec.output_pitch()))
    arrays.refuse("'out' is 'in', but only square matrices at equal pitches can be transposed in place");
  const Problem problem = transpose_problem(spec, arrays.alignment(), in_place);
  arrays.check(problem);
  if (!in_place)
    arrays.check_apart((spec.batch * spec.rows - 1) * spec.input_pitch() + spec.columns,
                       (spec.batch * spec.columns - 1) * spec.output_pitch() + spec.rows);
  void* const buffers[] = {const_cast<void*>(in), out};
  return session.launch(problem, buffers, stream);
}

}  // namespace hone
