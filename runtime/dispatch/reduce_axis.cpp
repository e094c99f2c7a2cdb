#include <hone/reduce_axis.h>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/dispatch/call_checks.h"

namespace hone {
namespace {

/// A call as messages name it: "tuned_reduce_rows(sum f32, 5 × 7 × 1)".
struct AxisCall {
  std::string_view function;
  const ReduceSpec& spec;
  const Problem& problem;

  [[noreturn]] void refuse(std::string_view why) const {
    const Extents& extents = problem.extents;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}({} {}, {} × {} × {}): {}", function, name(spec.op), info(spec.dtype).name, extents[0],
                            extents[1], extents[2], why));
  }

  void check(std::string_view buffer, const void* pointer, DType dtype, bool is_used) const {
    if (is_used && !pointer) refuse(fmt::format("'{}' is null; pass device memory of {}", buffer, info(dtype).name));
    if (const std::string why = misalignment(buffer, pointer, dtype); !why.empty()) refuse(why);
  }
};

/// Types and shapes that make no sense are refused on a miss, and never become a hit; but a pitch is no part of the
/// key, and neither is a shape that overflows told from others of its size class.
Choice launch(Session& session, const AxisCall& call, const void* in, void* out, Stream stream) {
  const Problem& problem = call.problem;
  if (const std::string why = problem.family->refuse(problem); !why.empty())
    throw Error(ErrorCode::invalid_argument, why);
  const bool has_outputs = problem.extents[0] > 0 && problem.extents[2] > 0;
  const bool has_inputs = has_outputs && problem.extents[1] > 0;
  call.check("in", in, call.spec.dtype, has_inputs);
  call.check("out", out, call.spec.result_dtype(), has_outputs);
  if (!has_outputs) return {};
  // Without elements nothing is read, and any address will do.
  void* const buffers[] = {has_inputs ? const_cast<void*>(in) : out, out};
  return session.launch(problem, buffers, stream);
}

}  // namespace

Choice tuned_reduce_rows(Session& session, const ReduceSpec& spec, const void* in, const RowsShape& shape, void* out,
                         Stream stream) {
  require_known("tuned_reduce_rows", spec);
  const Problem problem = reduce_rows_problem(spec, shape, alignment_of(in));
  return launch(session, {"tuned_reduce_rows", spec, problem}, in, out, stream);
}

Choice tuned_reduce_columns(Session& session, const ReduceSpec& spec, const void* in, const ColumnsShape& shape,
                            void* out, Stream stream) {
  require_known("tuned_reduce_columns", spec);
  const Problem problem = reduce_columns_problem(spec, shape, alignment_of(in));
  return launch(session, {"tuned_reduce_columns", spec, problem}, in, out, stream);
}

}  // namespace hone
