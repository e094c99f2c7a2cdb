#include <hone/all_softmax.h>

#include <algorithm>

#include <fmt/format.h>

#include "runtime/dispatch/all_reduce_call.h"
#include "runtime/dispatch/call_checks.h"
#include "runtime/families/combine_ranks/normalize_rows.h"

namespace hone {
namespace {

using Softmax = AllReduceCall::Softmax;

/// Results are rows of partials in the accumulator's dtype, and then rows of elements.
ReduceSpec sums_of(const SoftmaxSpec& spec) {
  return {.op = ReduceOp::logsumexp,
          .dtype = spec.dtype,
          .accumulator = spec.accumulator_dtype(),
          .result = spec.accumulator_dtype(),
          .numerics = spec.numerics};
}

RowsShape rows_of(const SoftmaxShape& shape) {
  return {.rows = shape.extents[0], .columns = shape.extents[1], .pitch = shape.pitches[0]};
}

/// The fault in where the arrays lie; "" if there is none.
std::string overlap_fault(const Problem& problem, const void* in, const void* out) {
  const ArrayRows from = rows_of(problem, 0, in), to = rows_of(problem, 1, out);
  const bool is_same = in == out && from.row_bytes == to.row_bytes &&
                       (from.rows <= 1 || from.pitch_bytes == to.pitch_bytes);
  if (is_same || !rows_overlap(from, to)) return "";
  return fmt::format("'in' at {} and 'out' at {} overlap; pass the same address with the same size of elements and "
                     "pitch, or arrays apart", in, out);
}

/// Why the local call would refuse its scale, or anything else but the extents; "" if it does not.
std::string spec_fault(const SoftmaxSpec& spec) {
  return softmax_family().refuse(softmax_problem(spec, SoftmaxShape::rows(1, 1)));
}

Softmax softmax_of(const SoftmaxSpec& spec, bool is_logarithm, const SoftmaxShape& shape, std::uint32_t alignment) {
  Softmax softmax{.spec = spec, .normalization = {}};
  softmax.normalization = softmax.is_canonical() ? canonical_normalize_problem(spec, is_logarithm, shape, alignment)
                                                 : normalize_rows_problem(spec, is_logarithm, shape, alignment);
  if (shape.over_columns) softmax.refusal = "takes the rows of a matrix; pass SoftmaxShape::rows()";
  else softmax.refusal = spec_fault(spec);
  return softmax;
}

Choice all_softmax(bool is_logarithm, Session& session, Communicator& communicator, const SoftmaxSpec& spec,
                   const void* in, const SoftmaxShape& shape, void* out, Stream stream) {
  const std::string_view function = is_logarithm ? "tuned_all_log_softmax" : "tuned_all_softmax";
  require_known(function, {spec.dtype, spec.result_dtype()});
  const ReduceSpec sums = sums_of(spec);
  const RowsShape rows = rows_of(shape);
  Softmax softmax = softmax_of(spec, is_logarithm, shape, std::min(alignment_of(in), alignment_of(out)));
  if (softmax.refusal.empty()) softmax.refusal = overlap_fault(softmax.normalization, in, out);
  return AllReduceCall(function, session, communicator, sums, rows, true, &softmax)
      .run({.in = in, .out = out}, stream);
}

}  // namespace

Choice tuned_all_softmax(Session& session, Communicator& communicator, const SoftmaxSpec& spec, const void* in,
                         const SoftmaxShape& shape, void* out, Stream stream) {
  return all_softmax(false, session, communicator, spec, in, shape, out, stream);
}

Choice tuned_all_log_softmax(Session& session, Communicator& communicator, const SoftmaxSpec& spec, const void* in,
                             const SoftmaxShape& shape, void* out, Stream stream) {
  return all_softmax(true, session, communicator, spec, in, shape, out, stream);
}

void prepare_all_softmax(Session& session, Communicator& communicator, const SoftmaxSpec& spec,
                         const SoftmaxShape& shape, std::uint32_t alignment, LaunchContext context) {
  require_known("prepare_all_softmax", {spec.dtype, spec.result_dtype()});
  const ReduceSpec sums = sums_of(spec);
  const RowsShape rows = rows_of(shape);
  for (const bool is_logarithm : {false, true}) {
    const Softmax softmax = softmax_of(spec, is_logarithm, shape, alignment);
    AllReduceCall("prepare_all_softmax", session, communicator, sums, rows, true, &softmax)
        .prepare(alignment, context);
  }
}

}  // namespace hone
