#include <hone/softmax_spec.h>

#include "runtime/families/softmax/softmax_base.h"

namespace hone {
namespace {

Problem problem_of(std::uint8_t operation, const SoftmaxSpec& spec, const SoftmaxShape& shape,
                   std::uint32_t alignment) {
  Problem problem{.family = shape.over_columns ? &softmax_columns_family() : &softmax_family(),
                  .operation = operation,
                  .dtype = spec.dtype,
                  .alignment = alignment,
                  .extents = shape.extents,
                  .pitches = shape.pitches};
  if (spec.result_dtype() != spec.dtype) problem.result = spec.result;
  if (spec.scale != 1) problem.scalars[0] = spec.scale;
  // Side by side is one pitch, however it is spelled.
  for (std::int64_t& pitch : problem.pitches)
    if (pitch == shape.extents[shape.over_columns ? 2 : 1]) pitch = 0;
  problem.alignment = row_alignment(problem, alignment);
  return problem;
}

}  // namespace

Problem softmax_problem(const SoftmaxSpec& spec, const SoftmaxShape& shape, std::uint32_t alignment) {
  return problem_of(kSoftmaxOperation, spec, shape, alignment);
}
Problem log_softmax_problem(const SoftmaxSpec& spec, const SoftmaxShape& shape, std::uint32_t alignment) {
  return problem_of(kLogSoftmaxOperation, spec, shape, alignment);
}

}  // namespace hone
