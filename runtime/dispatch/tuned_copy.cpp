#include <hone/copy.h>

#include <algorithm>

#include "runtime/dispatch/moved_arrays.h"

namespace hone {

Choice tuned_copy(Session& session, const CopySpec& spec, const void* in, void* out, Stream stream) {
  if (is_empty("tuned_copy", spec.element_bytes, {1, spec.rows, spec.columns})) return {};
  const Problem problem = copy_problem(spec, std::min(alignment_of(in), alignment_of(out)));
  const Call call{"tuned_copy", problem};
  check_arrays(call, in, out);
  check_apart(call, in, out);
  void* const buffers[] = {const_cast<void*>(in), out};
  return session.launch(problem, buffers, stream);
}

}  // namespace hone
