#include <hone/softmax.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/dispatch/call_checks.h"
#include "runtime/families/softmax/softmax_base.h"

namespace hone {
namespace {

[[noreturn]] void refuse(std::uint8_t operation, const Problem& problem, const std::string& why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("tuned_{}({}): {}", operation == kLogSoftmaxOperation ? "log_softmax" : "softmax",
                          to_string(problem), why));
}

/// The bytes of `in` and `out` must be the same elements, or apart.
void check_apart(std::uint8_t operation, const Problem& problem, const void* in, const void* out) {
  const SoftmaxTraits traits(problem);
  const bool over_columns = problem.family == &softmax_columns_family();
  const std::int64_t columns = problem.extents[over_columns ? 2 : 1];
  const std::int64_t rows = over_columns ? problem.extents[0] * problem.extents[1] : problem.extents[0];
  const auto pitch = [&](std::size_t i) { return problem.pitches[i] != 0 ? problem.pitches[i] : columns; };
  if (in == out) {
    if (traits.in_bytes != traits.out_bytes)
      refuse(operation, problem,
             fmt::format("in place, elements of {} cannot become results of {}, which have another size",
                         info(traits.in).name, info(traits.out).name));
    if (rows > 1 && pitch(0) != pitch(1))
      refuse(operation, problem, "in place, input and output must have the same pitch");
    return;
  }
  if (rows_overlap({in, columns * traits.in_bytes, pitch(0) * traits.in_bytes, rows},
                   {out, columns * traits.out_bytes, pitch(1) * traits.out_bytes, rows}))
    refuse(operation, problem,
           fmt::format("'in' at {} and 'out' at {} overlap; pass the same address, or arrays apart", in, out));
}

Choice launch(std::uint8_t operation, Session& session, const SoftmaxSpec& spec, const void* in,
              const SoftmaxShape& shape, void* out, Stream stream) {
  require_known("tuned_softmax", spec.dtype);
  require_known("tuned_softmax", spec.result_dtype());
  const std::uint32_t alignment = std::min(alignment_of(in), alignment_of(out));
  const Problem problem = operation == kLogSoftmaxOperation ? log_softmax_problem(spec, shape, alignment)
                                                            : softmax_problem(spec, shape, alignment);
  // The problem itself is checked on every call, not only on a miss: extents, pitches and the scale are no part of the
  // key, or only by their class.
  if (const std::string refusal = problem.family->refuse(problem); !refusal.empty())
    refuse(operation, problem, refusal);
  const std::int64_t elements = problem.extents[0] * problem.extents[1] * problem.extents[2];
  static std::byte nothing[kMaxAlignment];  // what empty arrays may point to
  std::array<void*, 2> buffers{const_cast<void*>(in), out};
  const DType dtypes[] = {spec.dtype, spec.result_dtype()};
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const std::string_view name = i == 0 ? "in" : "out";
    if (elements == 0) buffers[i] = nothing;
    if (!buffers[i]) refuse(operation, problem, fmt::format("'{}' is null; pass device memory", name));
    if (alignment_of(buffers[i]) < info(dtypes[i]).size_bytes)
      refuse(operation, problem, fmt::format("'{}' at {} is not aligned to its {}-byte elements", name, buffers[i],
                                             info(dtypes[i]).size_bytes));
  }
  if (elements > 0) check_apart(operation, problem, in, out);
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
