#include "runtime/families/softmax/softmax_base.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>

#include <fmt/format.h>

namespace hone {
namespace {

/// Twice the scale, as an accumulator; never 0 (hone::SoftmaxScale says why).
template <class Acc>
Acc nonzero(double value) {
  const auto rounded = static_cast<Acc>(value);
  return rounded != 0 ? rounded : std::copysign(std::numeric_limits<Acc>::denorm_min(), static_cast<Acc>(value));
}

double scale_of(const Problem& problem) { return problem.scalars[0].value_or(1); }

Problem problem_of(std::uint8_t operation, const SoftmaxSpec& spec, const SoftmaxShape& shape,
                   std::uint32_t alignment) {
  Problem problem{.family = shape.over_columns ? &softmax_columns_family() : &softmax_family(),
                  .operation = operation,
                  .dtype = spec.dtype,
                  .numerics = spec.numerics,
                  .alignment = alignment,
                  .extents = shape.extents};
  if (spec.result_dtype() != spec.dtype) problem.result = spec.result;
  if (spec.scale != 1) problem.scalars[0] = spec.scale;
  const std::int64_t row_length = shape.extents[shape.over_columns ? 2 : 1];
  problem.pitches = named_pitches(shape.pitches, row_length, row_length);
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

SoftmaxTraits::SoftmaxTraits(const Problem& problem)
    : in(problem.dtype),
      out(problem.result.value_or(problem.dtype)),
      accumulator(in == DType::f64 || out == DType::f64 ? DType::f64 : DType::f32),
      in_bytes(static_cast<std::int64_t>(info(in).size_bytes)),
      out_bytes(static_cast<std::int64_t>(info(out).size_bytes)),
      pack_elements(kMaxAlignment / std::max(in_bytes, out_bytes)),
      is_log(problem.operation == kLogSoftmaxOperation) {}

std::uint32_t row_alignment(const Problem& problem, std::uint32_t alignment) {
  const SoftmaxTraits traits(problem);
  const bool over_columns = SoftmaxBase::is_over_columns(problem);
  const std::int64_t columns = SoftmaxBase::matrix_columns(problem);
  const std::int64_t larger = std::max(traits.in_bytes, traits.out_bytes);
  const bool has_pitch = over_columns || problem.extents[0] > 1;
  std::int64_t elements = aligned_elements(alignment, larger,
                                           {over_columns ? columns : 0, has_pitch ? SoftmaxBase::pitch(problem, 0) : 0,
                                            has_pitch ? SoftmaxBase::pitch(problem, 1) : 0});
  if (!over_columns && elements < traits.pack_elements) elements = 1;
  return static_cast<std::uint32_t>(elements * larger);
}

std::int64_t best_chunks(std::int64_t blocks, std::int64_t lines, std::int64_t most) {
  constexpr std::int64_t kMostRounds = 8;
  constexpr double kWorthwhile = 0.02;
  std::int64_t best = 1;
  double best_use = 0;
  for (std::int64_t rounds = 1; rounds <= kMostRounds; ++rounds) {
    const std::int64_t chunks = std::clamp<std::int64_t>(rounds * blocks / lines, 1, most);
    const std::int64_t items = chunks * lines;
    const double use = static_cast<double>(items) / static_cast<double>(divide_up(items, blocks) * blocks);
    if (use <= best_use + kWorthwhile) continue;
    best = chunks;
    best_use = use;
  }
  return best;
}

std::int64_t SoftmaxBase::matrix_rows(const Problem& problem) {
  return is_over_columns(problem) ? problem.extents[0] * problem.extents[1] : problem.extents[0];
}

std::int64_t SoftmaxBase::matrix_columns(const Problem& problem) {
  return problem.extents[is_over_columns(problem) ? 2 : 1];
}

std::int64_t SoftmaxBase::pitch(const Problem& problem, int buffer) {
  return pitch_of(problem, static_cast<std::size_t>(buffer), matrix_columns(problem));
}

Rows SoftmaxBase::rows(const Problem& problem, int buffer) {
  const bool over_columns = is_over_columns(problem);
  return {.batch = problem.extents[0],
          .rows = over_columns ? problem.extents[1] : 1,
          .length = problem.extents[over_columns ? 2 : 1],
          .pitch = pitch(problem, buffer)};
}

std::string SoftmaxBase::refuse(const Problem& problem) const {
  const auto refused = [&](const std::string& why) { return fmt::format("{}: {}", to_string(problem), why); };
  const SoftmaxTraits traits(problem);
  if (std::string refusal = refuse_usual(problem, traits.accumulator); !refusal.empty()) return refusal;
  for (const DType dtype : {problem.dtype, problem.result.value_or(problem.dtype)})
    if (!info(dtype).is_floating() || info(dtype).size_bytes < 2)
      return refused(fmt::format("elements and results are f16, bf16, f32 or f64, not {}", info(dtype).name));
  if (std::string refusal =
          refuse_rows(to_string(problem), rows(problem, 0), rows(problem, 1), {traits.in_bytes, traits.out_bytes});
      !refusal.empty())
    return refusal;
  if (const std::uint32_t found = row_alignment(problem, problem.alignment); found < problem.alignment)
    return refused(
        fmt::format("alignment {} is asked for, but what all rows have is {}; softmax_problem() finds the alignment",
                    problem.alignment, found));
  const double most = traits.accumulator == DType::f64 ? std::numeric_limits<double>::max() / 4
                                                       : static_cast<double>(std::numeric_limits<float>::max()) / 4;
  if (!(std::abs(scale_of(problem)) <= most))
    return refused(fmt::format("a scale of {} is not finite, or beyond {}", scale_of(problem), most));
  return "";
}

std::int64_t SoftmaxBase::bytes_moved(const Problem& problem) const {
  const SoftmaxTraits traits(problem);
  return matrix_rows(problem) * matrix_columns(problem) * (traits.in_bytes + traits.out_bytes);
}

std::vector<BufferSpec> SoftmaxBase::buffers(const Problem& problem) const {
  const SoftmaxTraits traits(problem);
  // Where packs are not aligned, both arrays start as many elements after a multiple of them: in step with each other,
  // as arrays are that rows of an odd length have put out of line.
  const auto alignment = [&](std::int64_t bytes) {
    return problem.alignment >= kMaxAlignment ? std::int64_t{kMaxAlignment} : pack_elements(problem) * bytes;
  };
  return {input("in", traits.in, rows(problem, 0).elements(), alignment(traits.in_bytes)),
          output("out", traits.out, rows(problem, 1).elements(), alignment(traits.out_bytes))};
}

std::int64_t SoftmaxBase::pack_elements(const Problem& problem) {
  const SoftmaxTraits traits(problem);
  return at_least_one(problem.alignment / std::max(traits.in_bytes, traits.out_bytes));
}

std::string SoftmaxBase::type_list(const Problem& problem) {
  const SoftmaxTraits traits(problem);
  return fmt::format("{}, {}, {}", info(traits.in).cuda_name, info(traits.out).cuda_name,
                     info(traits.accumulator).cuda_name);
}

template <class Acc>
SoftmaxFactors<Acc> softmax_factors(const Problem& problem) {
  double scale = scale_of(problem);
  if (scale == 0) scale = 0.0;  // −0, too
  return {.factor = nonzero<Acc>(2 * scale), .exponent = nonzero<Acc>(2 * scale * std::numbers::log2e)};
}
template SoftmaxFactors<float> softmax_factors(const Problem& problem);
template SoftmaxFactors<double> softmax_factors(const Problem& problem);

double softmax_factor(const SoftmaxSpec& spec) {
  const Problem problem = softmax_problem(spec, SoftmaxShape::rows(1, 1));
  return spec.accumulator_dtype() == DType::f64 ? softmax_factors<double>(problem).factor
                                                : static_cast<double>(softmax_factors<float>(problem).factor);
}

}  // namespace hone
