// The calls, and the problems that describe them ahead of the call.
#include <algorithm>
#include <vector>

#include <hone/copy.h>
#include <hone/custom_reduce.h>
#include <hone/fused_reduce.h>
#include <hone/reduce_axis.h>
#include <hone/rms_norm.h>
#include <hone/segmented_reduce.h>
#include <hone/softmax.h>
#include <hone/transpose.h>

#include "bindings/c/handles.h"
#include "bindings/c/status.h"

using namespace hone;
using hone::c::guarded, hone::c::required, hone::c::stream_of;

namespace hone::c {
namespace {

constexpr hone_reduce_spec kReduceDefaults{.size = 0,
                                           .op = static_cast<int32_t>(ReduceOp::sum),
                                           .dtype = static_cast<int32_t>(DType::f32),
                                           .accumulator = -1,
                                           .result = -1,
                                           .nan_policy = HONE_NAN_PROPAGATE,
                                           .numerics = HONE_NUMERICS_FAST};

constexpr hone_softmax_spec kSoftmaxDefaults{.size = 0,
                                             .dtype = static_cast<int32_t>(DType::f32),
                                             .result = -1,
                                             .logarithm = 0,
                                             .numerics = HONE_NUMERICS_FAST,
                                             .scale = 1,
                                             .outer = 0,
                                             .reduced = 0,
                                             .inner = 1,
                                             .in_pitch = 0,
                                             .out_pitch = 0};

constexpr hone_rms_norm_spec kRmsNormDefaults{.size = 0,
                                               .dtype = static_cast<int32_t>(DType::f32),
                                               .reserved = 0,
                                               .rows = 0,
                                               .columns = 0,
                                               .eps = RmsNormSpec::kUsualEps,
                                               .in_pitch = 0,
                                               .out_pitch = 0};

constexpr hone_reduction_source kReductionDefaults{.size = 0,
                                                   .name = nullptr,
                                                   .map = nullptr,
                                                   .combine = nullptr,
                                                   .identity = nullptr,
                                                   .finish = nullptr,
                                                   .declarations = nullptr,
                                                   .accumulator = static_cast<int32_t>(DType::f32),
                                                   .result = -1,
                                                   .relative_tolerance = 0};

constexpr hone_matrix_spec kMatrixDefaults{
    .size = 0, .element_bytes = 4, .batch = 1, .rows = 0, .columns = 0, .in_pitch = 0, .out_pitch = 0};

NanPolicy nan_policy_of(std::int32_t number) {
  if (number == HONE_NAN_PROPAGATE) return NanPolicy::propagate;
  if (number == HONE_NAN_IGNORE) return NanPolicy::ignore;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("nan_policy is {}: HONE_NAN_PROPAGATE and HONE_NAN_IGNORE are 0 and 1", number));
}

Numerics numerics_of(std::int32_t number) {
  if (number == HONE_NUMERICS_FAST) return Numerics::fast;
  if (number == HONE_NUMERICS_REPRODUCIBLE) return Numerics::reproducible;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("numerics is {}: HONE_NUMERICS_FAST and HONE_NUMERICS_REPRODUCIBLE are 0 and 1", number));
}

ReduceSpec spec_of(const hone_reduce_spec* given) {
  const hone_reduce_spec spec = read(given, kReduceDefaults, "hone_reduce_spec");
  return {.op = op_of(spec.op),
          .dtype = dtype_of(spec.dtype, "dtype"),
          .nan = nan_policy_of(spec.nan_policy),
          .accumulator = optional_dtype(spec.accumulator, "accumulator"),
          .result = optional_dtype(spec.result, "result"),
          .numerics = numerics_of(spec.numerics)};
}

FusedReduction fused_of(const std::int32_t* ops, std::int32_t count) {
  required(ops, "ops");
  if (count < 1 || static_cast<std::size_t>(count) > FusedReduction::kMost)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} operations: one to {} can be fused", count, FusedReduction::kMost));
  std::vector<ReduceOp> list;
  for (std::int32_t i = 0; i < count; ++i) list.push_back(op_of(ops[i]));
  return FusedReduction(list);
}

CustomReduction custom_of(const hone_reduction_source* given) {
  const hone_reduction_source source = read(given, kReductionDefaults, "hone_reduction_source");
  ReduceExpressions expressions;
  const auto take = [](const char* text, std::string& to) {
    if (text != nullptr) to = text;
  };
  take(source.name, expressions.name);
  take(source.map, expressions.map);
  take(source.combine, expressions.combine);
  take(source.identity, expressions.identity);
  take(source.finish, expressions.finish);
  take(source.declarations, expressions.declarations);
  expressions.relative_tolerance = source.relative_tolerance;
  return CustomReduction(expressions, dtype_of(source.accumulator, "accumulator"),
                         optional_dtype(source.result, "result"));
}

RmsNormSpec rms_norm_of(const hone_rms_norm_spec* given) {
  const hone_rms_norm_spec spec = read(given, kRmsNormDefaults, "hone_rms_norm_spec");
  return {.dtype = dtype_of(spec.dtype, "dtype"),
          .rows = spec.rows,
          .columns = spec.columns,
          .eps = spec.eps,
          .in_pitch = spec.in_pitch,
          .out_pitch = spec.out_pitch};
}

struct SoftmaxCall {
  SoftmaxSpec spec;
  SoftmaxShape shape;
  bool is_logarithm;
};

SoftmaxCall call_of(const hone_softmax_spec* given) {
  const hone_softmax_spec spec = read(given, kSoftmaxDefaults, "hone_softmax_spec");
  const Pitches pitches{spec.in_pitch, spec.out_pitch};
  return {.spec = {.dtype = dtype_of(spec.dtype, "dtype"),
                   .result = optional_dtype(spec.result, "result"),
                   .scale = spec.scale,
                   .numerics = numerics_of(spec.numerics)},
          .shape = spec.inner == 1 ? SoftmaxShape::rows(spec.outer, spec.reduced, pitches)
                                   : SoftmaxShape::axis(spec.outer, spec.reduced, spec.inner, pitches),
          .is_logarithm = flag_of(spec.logarithm, "logarithm")};
}

TransposeSpec transpose_of(const hone_matrix_spec* given) {
  const hone_matrix_spec spec = read(given, kMatrixDefaults, "hone_matrix_spec");
  return {.element_bytes = spec.element_bytes,
          .rows = spec.rows,
          .columns = spec.columns,
          .batch = spec.batch,
          .in_pitch = spec.in_pitch,
          .out_pitch = spec.out_pitch};
}

CopySpec copy_of(const hone_matrix_spec* given) {
  const hone_matrix_spec spec = read(given, kMatrixDefaults, "hone_matrix_spec");
  if (spec.batch != 1)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("a copy of a batch of {}: a copy has one matrix, whose rows may be those of all", spec.batch));
  return {.element_bytes = spec.element_bytes,
          .rows = spec.rows,
          .columns = spec.columns,
          .in_pitch = spec.in_pitch,
          .out_pitch = spec.out_pitch};
}

/// Runs a call of the session, and tells what it was dispatched to.
template <class Call>
hone_status call(hone_session* session, hone_choice* choice, const Call& work) {
  return guarded([&] { write_choice(work(required(session, "session").session), choice); });
}

}  // namespace
}  // namespace hone::c

hone_status hone_reduce_spec_init(hone_reduce_spec* spec, size_t size) {
  return c::init(spec, size, c::kReduceDefaults, "hone_reduce_spec");
}
hone_status hone_softmax_spec_init(hone_softmax_spec* spec, size_t size) {
  return c::init(spec, size, c::kSoftmaxDefaults, "hone_softmax_spec");
}
hone_status hone_reduction_source_init(hone_reduction_source* source, size_t size) {
  return c::init(source, size, c::kReductionDefaults, "hone_reduction_source");
}
hone_status hone_rms_norm_spec_init(hone_rms_norm_spec* spec, size_t size) {
  return c::init(spec, size, c::kRmsNormDefaults, "hone_rms_norm_spec");
}
hone_status hone_matrix_spec_init(hone_matrix_spec* spec, size_t size) {
  return c::init(spec, size, c::kMatrixDefaults, "hone_matrix_spec");
}

int32_t hone_result_dtype(const hone_reduce_spec* spec) {
  int32_t result = -1;
  guarded([&] {
    const ReduceSpec known = c::spec_of(spec);
    if (!reduce_supports(known.op, known.dtype))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} is not defined for {}", info(known.op).name, info(known.dtype).name));
    result = static_cast<int32_t>(known.result_dtype());
  });
  return result;
}

hone_status hone_reduce(hone_session* session, const hone_reduce_spec* spec, const void* in, int64_t n, void* out,
                        void* stream, hone_choice* choice) {
  return c::call(session, choice,
                 [&](Session& s) { return tuned_reduce(s, c::spec_of(spec), in, n, out, stream_of(stream)); });
}

hone_status hone_dot(hone_session* session, const hone_reduce_spec* spec, const void* a, const void* b, int64_t n,
                     void* out, void* stream, hone_choice* choice) {
  return c::call(session, choice,
                 [&](Session& s) { return tuned_dot(s, c::spec_of(spec), a, b, n, out, stream_of(stream)); });
}

hone_status hone_reduce_fused(hone_session* session, const int32_t* ops, int32_t count, int32_t dtype,
                              int32_t nan_policy, const void* in, int64_t n, void* const* outs, void* stream,
                              hone_choice* choice) {
  return c::call(session, choice, [&](Session& s) {
    const FusedReduction reduction = c::fused_of(ops, count);
    required(outs, "outs");
    return tuned_reduce(s, reduction, c::dtype_of(dtype, "dtype"), in, n, std::vector<void*>(outs, outs + count),
                        stream_of(stream), c::nan_policy_of(nan_policy));
  });
}

hone_status hone_reduction_create(const hone_reduction_source* source, hone_reduction** reduction) {
  return guarded([&] { required(reduction, "reduction") = new hone_reduction{c::custom_of(source)}; });
}

void hone_reduction_destroy(hone_reduction* reduction) { delete reduction; }

hone_status hone_reduce_custom(hone_session* session, const hone_reduction* reduction, int32_t dtype, const void* in,
                               int64_t n, void* out, void* stream, hone_choice* choice) {
  return c::call(session, choice, [&](Session& s) {
    return tuned_reduce(s, required(reduction, "reduction").reduction, c::dtype_of(dtype, "dtype"), in, n, out,
                        stream_of(stream));
  });
}

hone_status hone_reduce_rows(hone_session* session, const hone_reduce_spec* spec, const void* in, int64_t rows,
                             int64_t columns, int64_t pitch, void* out, void* stream, hone_choice* choice) {
  return c::call(session, choice, [&](Session& s) {
    return tuned_reduce_rows(s, c::spec_of(spec), in, {rows, columns, pitch}, out, stream_of(stream));
  });
}

hone_status hone_reduce_columns(hone_session* session, const hone_reduce_spec* spec, const void* in, int64_t outer,
                                int64_t reduced, int64_t inner, int64_t pitch, void* out, void* stream,
                                hone_choice* choice) {
  return c::call(session, choice, [&](Session& s) {
    return tuned_reduce_columns(s, c::spec_of(spec), in, {outer, reduced, inner, pitch}, out, stream_of(stream));
  });
}

hone_status hone_reduce_segments(hone_session* session, const hone_reduce_spec* spec, const void* in, int64_t elements,
                                 const void* offsets, int32_t offset_dtype, int64_t segments, void* out, void* stream,
                                 hone_choice* choice) {
  return c::call(session, choice, [&](Session& s) {
    return tuned_reduce_segments(s, c::spec_of(spec), in, elements, offsets, c::dtype_of(offset_dtype, "offset_dtype"),
                                 segments, out, stream_of(stream));
  });
}

hone_status hone_softmax(hone_session* session, const hone_softmax_spec* spec, const void* in, void* out, void* stream,
                         hone_choice* choice) {
  return c::call(session, choice, [&](Session& s) {
    const c::SoftmaxCall what = c::call_of(spec);
    return what.is_logarithm ? tuned_log_softmax(s, what.spec, in, what.shape, out, stream_of(stream))
                             : tuned_softmax(s, what.spec, in, what.shape, out, stream_of(stream));
  });
}

hone_status hone_rms_norm(hone_session* session, const hone_rms_norm_spec* spec, const void* in, const void* residual,
                          const void* weight, void* out, void* sum, void* stream, hone_choice* choice) {
  return c::call(session, choice, [&](Session& s) {
    return tuned_rms_norm(s, c::rms_norm_of(spec), {in, residual, weight, out, sum}, stream_of(stream));
  });
}

hone_status hone_transpose(hone_session* session, const hone_matrix_spec* spec, const void* in, void* out, void* stream,
                           hone_choice* choice) {
  return c::call(session, choice,
                 [&](Session& s) { return tuned_transpose(s, c::transpose_of(spec), in, out, stream_of(stream)); });
}

hone_status hone_copy(hone_session* session, const hone_matrix_spec* spec, const void* in, void* out, void* stream,
                      hone_choice* choice) {
  return c::call(session, choice,
                 [&](Session& s) { return tuned_copy(s, c::copy_of(spec), in, out, stream_of(stream)); });
}

hone_status hone_problem_reduce(const hone_reduce_spec* spec, int64_t n, uint32_t alignment, hone_problem** problem) {
  return c::make_problem(alignment, problem,
                         [&](std::uint32_t bytes) { return reduce_problem(c::spec_of(spec), n, bytes); });
}

hone_status hone_problem_reduce_rows(const hone_reduce_spec* spec, int64_t rows, int64_t columns, int64_t pitch,
                                     uint32_t alignment, hone_problem** problem) {
  return c::make_problem(alignment, problem, [&](std::uint32_t bytes) {
    return reduce_rows_problem(c::spec_of(spec), {rows, columns, pitch}, bytes);
  });
}

hone_status hone_problem_reduce_columns(const hone_reduce_spec* spec, int64_t outer, int64_t reduced, int64_t inner,
                                        int64_t pitch, uint32_t alignment, hone_problem** problem) {
  return c::make_problem(alignment, problem, [&](std::uint32_t bytes) {
    return reduce_columns_problem(c::spec_of(spec), {outer, reduced, inner, pitch}, bytes);
  });
}

hone_status hone_problem_reduce_segments(const hone_reduce_spec* spec, int64_t elements, int32_t offset_dtype,
                                         int64_t segments, hone_problem** problem) {
  return c::make_problem(kMaxAlignment, problem, [&](std::uint32_t) {
    return segmented_reduce_problem(c::spec_of(spec), c::dtype_of(offset_dtype, "offset_dtype"), segments, elements);
  });
}

hone_status hone_problem_reduce_fused(const int32_t* ops, int32_t count, int32_t dtype, int32_t nan_policy, int64_t n,
                                      uint32_t alignment, hone_problem** problem) {
  return c::make_problem(alignment, problem, [&](std::uint32_t bytes) {
    return c::fused_of(ops, count).problem(c::dtype_of(dtype, "dtype"), n, bytes, c::nan_policy_of(nan_policy));
  });
}

hone_status hone_problem_reduce_custom(const hone_reduction* reduction, int32_t dtype, int64_t n, uint32_t alignment,
                                       hone_problem** problem) {
  return c::make_problem(alignment, problem, [&](std::uint32_t bytes) {
    return required(reduction, "reduction").reduction.problem(c::dtype_of(dtype, "dtype"), n, bytes);
  });
}

hone_status hone_problem_rms_norm(const hone_rms_norm_spec* spec, int32_t has_weight, int32_t has_residual,
                                  uint32_t alignment, hone_problem** problem) {
  return c::make_problem(alignment, problem, [&](std::uint32_t bytes) {
    return rms_norm_problem(c::rms_norm_of(spec), has_weight != 0, has_residual != 0, bytes);
  });
}

hone_status hone_problem_softmax(const hone_softmax_spec* spec, uint32_t alignment, hone_problem** problem) {
  return c::make_problem(alignment, problem, [&](std::uint32_t bytes) {
    const c::SoftmaxCall what = c::call_of(spec);
    return what.is_logarithm ? log_softmax_problem(what.spec, what.shape, bytes)
                             : softmax_problem(what.spec, what.shape, bytes);
  });
}

hone_status hone_problem_transpose(const hone_matrix_spec* spec, uint32_t alignment, int32_t in_place,
                                   hone_problem** problem) {
  return c::make_problem(alignment, problem, [&](std::uint32_t bytes) {
    return transpose_problem(c::transpose_of(spec), bytes, in_place != 0);
  });
}

hone_status hone_problem_copy(const hone_matrix_spec* spec, uint32_t alignment, hone_problem** problem) {
  return c::make_problem(alignment, problem,
                         [&](std::uint32_t bytes) { return copy_problem(c::copy_of(spec), bytes); });
}

void hone_problem_destroy(hone_problem* problem) { delete problem; }

hone_status hone_problem_set_graph(hone_problem* problem, int32_t is_graph) {
  return guarded([&] {
    required(problem, "problem").problem.launch_context = is_graph != 0 ? LaunchContext::graph : LaunchContext::stream;
  });
}

hone_status hone_problem_text(const hone_problem* problem, char** text) {
  return guarded([&] { required(text, "text") = c::copied(to_string(required(problem, "problem").problem)); });
}
