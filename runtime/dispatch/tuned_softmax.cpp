#include <hone/softmax.h>

#include <algorithm>

#include <fmt/format.h>

#include "runtime/dispatch/call_checks.h"
#include "runtime/families/softmax/softmax_base.h"

namespace hone {
namespace {

/// The bytes of `in` and `out` must be the same elements, or apart.
void check_same_or_apart(const Call& call, const void* in, const void* out) {
  const ArrayRows from = rows_of(call.problem, 0, in), to = rows_of(call.problem, 1, out);
  if (in != out) return call.check_apart("in", from, "out", to, true);
  if (from.row_bytes != to.row_bytes)
    call.refuse("in place, elements cannot become results of another size");
  if (from.rows > 1 && from.pitch_bytes != to.pitch_bytes)
    call.refuse("in place, input and output must have the same pitch");
}

Choice launch(std::uint8_t operation, Session& session, const SoftmaxSpec& spec, const void* in,
              const SoftmaxShape& shape, void* out, Stream stream) {
  const bool is_log = operation == kLogSoftmaxOperation;
  const std::string_view function = is_log ? "tuned_log_softmax" : "tuned_softmax";
  require_known(function, {spec.dtype, spec.result_dtype()});
  const std::uint32_t alignment = std::min(alignment_of(in), alignment_of(out));
  const Problem problem =
      is_log ? log_softmax_problem(spec, shape, alignment) : softmax_problem(spec, shape, alignment);
  const Call call{function, problem};
  call.check_problem();
  if (std::ranges::find(problem.extents, 0) != problem.extents.end()) return {};
  void* const buffers[] = {const_cast<void*>(in), out};
  call.check_array("in", in, spec.dtype);
  call.check_array("out", out, spec.result_dtype());
  check_same_or_apart(call, in, out);
  return session.launch(problem, buffers, stream);
}

}  // namespace

Choice tuned_softmax(Session& session, const SoftmaxSpec& spec, const void* in, const SoftmaxShape& shape, void* out,
                     Stream stream) {
  return launch(kSoftmaxOperation, session, spec, in, shape, out, stream);
}
Choice tuned_log_softmax(Session& session, const SoftmaxSpec& spec, const void* in, const SoftmaxShape& shape,
                         void* out, Stream stream) {
  return launch(kLogSoftmaxOperation, session, spec, in, shape, out, stream);
}

}  // namespace hone
