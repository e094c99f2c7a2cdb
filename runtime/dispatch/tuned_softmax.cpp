#include <hone/softmax.h>

#include <algorithm>

#include <fmt/format.h>

#include "runtime/dispatch/call_checks.h"
#include "runtime/families/softmax/softmax_base.h"

namespace hone {
namespace {

/// The bytes of `in` and `out` must be the same elements, or apart.
void check_same_or_apart(const Call& call, const void* in, const void* out) {
  const Problem& problem = call.problem;
  const SoftmaxTraits traits(problem);
  const Rows matrix = static_cast<const SoftmaxBase&>(*problem.family).rows(problem, 0);
  const std::int64_t rows = matrix.batch * matrix.rows, columns = matrix.length;
  const auto pitch = [&](int buffer) { return SoftmaxBase::pitch(problem, buffer); };
  if (in == out) {
    if (traits.in_bytes != traits.out_bytes)
      call.refuse(fmt::format("in place, elements of {} cannot become results of {}, which have another size",
                              info(traits.in).name, info(traits.out).name));
    if (rows > 1 && pitch(0) != pitch(1))
      call.refuse("in place, input and output must have the same pitch");
    return;
  }
  call.check_apart("in", {in, columns * traits.in_bytes, pitch(0) * traits.in_bytes, rows}, "out",
                   {out, columns * traits.out_bytes, pitch(1) * traits.out_bytes, rows}, true);
}

Choice launch(std::uint8_t operation, Session& session, const SoftmaxSpec& spec, const void* in,
              const SoftmaxShape& shape, void* out, Stream stream) {
  const bool is_log = operation == kLogSoftmaxOperation;
  const std::string_view function = is_log ? "tuned_log_softmax" : "tuned_softmax";
  require_known(function, spec.dtype);
  require_known(function, spec.result_dtype());
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
