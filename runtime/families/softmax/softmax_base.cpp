#include "runtime/families/softmax/softmax_base.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>

#include <fmt/format.h>

#include "runtime/families/softmax/canonical_softmax.h"
#include "runtime/families/softmax/softmax_reference.h"

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
                  .extents = shape.extents};
  if (spec.result_dtype() != spec.dtype) problem.result = spec.result;
  if (spec.scale != 1) problem.scalars[0] = spec.scale;
  const std::int64_t row_length = shape.extents[shape.over_columns ? 2 : 1];
  problem.pitches = named_pitches(shape.pitches, row_length, row_length);
  return with_alignment_of_rows(problem, alignment);
}

std::vector<ElementRange> column_parts(const Problem& problem) {
  constexpr std::int64_t kElements = 1 << 15;  // to compute, of all columns together
  constexpr std::int64_t kRuns = 4;            // of matrices, and of their rows, each of which is copied by itself
  const auto [outer, reduced, inner] = problem.extents;
  if (outer == 0 || reduced == 0 || inner == 0) return {};
  const std::int64_t first = std::min(inner, std::max<std::int64_t>(2, kElements / reduced / 4));
  const std::int64_t last = std::min(first, inner - first);
  std::vector<ElementRange> parts;
  for (const ElementRange& matrices : spread_runs(outer, 1, kRuns))
    for (std::int64_t matrix = matrices.first; matrix < matrices.first + matrices.count; ++matrix)
      for (const ElementRange& rows : spread_runs(reduced, 4, kRuns))
        for (std::int64_t row = rows.first; row < rows.first + rows.count; ++row) {
          const std::int64_t at = (matrix * reduced + row) * SoftmaxBase::pitch(problem, 1);
          parts.push_back({at, first});
          if (last > 0) parts.push_back({at + inner - last, last});
        }
  return parts;
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

std::int64_t SoftmaxBase::pitch(const Problem& problem, int buffer) {
  return pitch_of(problem, static_cast<std::size_t>(buffer), problem.extents[is_over_columns(problem) ? 2 : 1]);
}

Rows SoftmaxBase::rows(const Problem& problem, int buffer) const {
  const bool over_columns = is_over_columns(problem);
  return {.batch = problem.extents[0],
          .rows = over_columns ? problem.extents[1] : 1,
          .length = problem.extents[over_columns ? 2 : 1],
          .pitch = pitch(problem, buffer)};
}

std::string SoftmaxBase::fault_of(const Problem& problem) const {
  const SoftmaxTraits traits(problem);
  for (const DType dtype : {traits.in, traits.out})
    if (!info(dtype).is_floating() || info(dtype).size_bytes < 2)
      return fmt::format("elements and results are f16, bf16, f32 or f64, not {}", info(dtype).name);
  const double most = traits.accumulator == DType::f64 ? std::numeric_limits<double>::max() / 4
                                                       : static_cast<double>(std::numeric_limits<float>::max()) / 4;
  if (!(std::abs(scale_of(problem)) <= most))
    return fmt::format("scale is {}; give one of a magnitude below 2^{}", scale_of(problem), std::ilogb(most) + 1);
  return choice_fault(problem, traits.accumulator);
}

std::uint32_t SoftmaxBase::alignment_of_rows(const Problem& problem) const {
  const SoftmaxTraits traits(problem);
  const bool over_columns = is_over_columns(problem);
  const std::int64_t larger = std::max(traits.in_bytes, traits.out_bytes);
  const bool has_pitch = over_columns || problem.extents[0] > 1;
  const auto step = [&](int buffer) { return has_pitch ? pitch(problem, buffer) : 0; };
  std::int64_t elements =
      aligned_elements(problem.alignment, larger, {over_columns ? problem.extents[2] : 0, step(0), step(1)});
  if (!over_columns && elements < traits.pack_elements) elements = 1;
  return static_cast<std::uint32_t>(elements * larger);
}

std::int64_t SoftmaxBase::bytes_moved(const Problem& problem) const {
  const SoftmaxTraits traits(problem);
  const auto [first, second, third] = problem.extents;
  return first * second * third * (traits.in_bytes + traits.out_bytes);
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

std::string SoftmaxTraits::type_list() const {
  return fmt::format("{}, {}, {}", info(in).cuda_name, info(out).cuda_name, info(accumulator).cuda_name);
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

/// Weights that underflow, elements whose difference overflows, masks of −∞, NaN, +∞, and nothing but −∞.
std::span<const std::string_view> SoftmaxBase::input_kinds(const Problem&) const {
  static constexpr std::array<std::string_view, 7> kKinds{"uniform", "wide",     "huge",                 "masked",
                                                          "nan",     "infinity", "all_negative_infinity"};
  return kKinds;
}

std::vector<std::byte> SoftmaxBase::input_pattern(const Problem& problem, int, std::string_view kind) const {
  return float_pattern(problem.dtype, problem.family->buffers(problem)[0].elements, 0, kind);
}

/// The problem itself; one column less, with the pitch kept; one row less; and with a scale that reverses the order.
std::vector<Problem> SoftmaxBase::verified_problems(const Problem& problem) const {
  const std::size_t columns = is_over_columns(problem) ? 2 : 1;
  // Over columns packs lie side by side in each row, and their number is what may differ.
  const std::int64_t least = columns == 2 ? pack_elements(problem) : 1;
  Problem scaled = problem;
  scaled.scalars[0] = -0.5;
  return {problem, smaller(problem, columns, least, {pitch(problem, 0), pitch(problem, 1)}),
          smaller(problem, columns - 1), scaled};
}

std::vector<ElementRange> SoftmaxBase::verified_parts(const Problem& problem, int) const {
  if (is_over_columns(problem)) return column_parts(problem);
  return row_parts(problem.extents[0], problem.extents[1], pitch(problem, 1));
}

std::string SoftmaxBase::verify(const Problem& problem, const Candidate& candidate, ArrayBytes patterns,
                                ArrayBytes outputs) const {
  const SoftmaxTraits traits(problem);
  const softmax_reference::Computation computation{.dtype = traits.in,
                                                   .result = traits.out,
                                                   .accumulator = traits.accumulator,
                                                   .scale = problem.scalars[0].value_or(1),
                                                   .is_log = traits.is_log,
                                                   .chain = longest_chain(problem, candidate)};
  const std::int64_t in_pitch = pitch(problem, 0), out_pitch = pitch(problem, 1);
  const std::int64_t reduced = problem.extents[1];
  const auto line_of = [&](std::int64_t element) {
    const std::int64_t row = element / out_pitch, column = element % out_pitch, first_row = row / reduced * reduced;
    if (!is_over_columns(problem))
      return softmax_reference::Line{.elements = reduced, .in_first = row * in_pitch, .out_first = row * out_pitch};
    return softmax_reference::Line{.elements = reduced,
                                   .in_first = first_row * in_pitch + column,
                                   .in_stride = in_pitch,
                                   .out_first = first_row * out_pitch + column,
                                   .out_stride = out_pitch};
  };
  const std::vector<ElementRange> parts = verified_parts(problem, 1);
  if (is_canonical(problem)) {
    double factor = 0;
    with_accumulator(traits,
                     [&]<class Acc>(Acc) { factor = static_cast<double>(softmax_factors<Acc>(problem).factor); });
    return canonical::verify_softmax(computation, factor, patterns[0], parts, line_of, outputs[0]);
  }
  return softmax_reference::verify(computation, patterns[0], parts, line_of, outputs[0]);
}

}  // namespace hone
