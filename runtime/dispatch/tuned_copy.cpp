#include <hone/copy.h>

#include "runtime/dispatch/moved_arrays.h"

namespace hone {

Choice tuned_copy(Session& session, const CopySpec& spec, const void* in, void* out, Stream stream) {
  const MovedArrays arrays{.function = "tuned_copy", .element_bytes = spec.element_bytes, .in = in, .out = out};
  if (is_empty(arrays, 1, spec.rows, spec.columns)) return {};
  arrays.check();
  const Problem problem = copy_problem(spec, arrays.alignment());
  arrays.check(problem);
  arrays.check_apart((spec.rows - 1) * spec.input_pitch() + spec.columns,
                     (spec.rows - 1) * spec.output_pitch() + spec.columns);
  void* const buffers[] = {const_cast<void*>(in), out};
  return session.launch(problem, buffers, stream);
}

}  // namespace hone
