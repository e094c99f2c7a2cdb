// How the softmax families are verified.
#include <algorithm>
#include <array>

#include "runtime/families/softmax/canonical_softmax.h"
#include "runtime/families/softmax/softmax_base.h"
#include "runtime/families/softmax/softmax_reference.h"

namespace hone {
namespace {

std::vector<ElementRange> column_parts(const Problem& problem) {
  constexpr std::int64_t kElements = 1 << 15;  // to compute, of all columns together
  constexpr std::int64_t kMostRows = 16;       // of a column, each of which is copied by itself
  const auto [outer, reduced, inner] = problem.extents;
  if (outer == 0 || reduced == 0 || inner == 0) return {};
  const std::int64_t columns = std::min(inner, std::max<std::int64_t>(2, kElements / reduced / 4));
  const std::array<std::int64_t, 4> outers{0, outer / 3, outer / 2, outer - 1};
  const std::array<std::int64_t, 2> firsts{0, inner - columns};
  std::vector<ElementRange> parts;
  for (const std::int64_t matrix : outers) {
    for (std::int64_t i = 0; i < std::min(reduced, kMostRows); ++i) {
      const std::int64_t row = reduced <= kMostRows ? i
                               : i < 4              ? i
                               : i >= 12            ? reduced - kMostRows + i
                                                    : i * reduced / kMostRows + i % 3;
      for (const std::int64_t first : firsts) {
        const std::int64_t at = (matrix * reduced + row) * SoftmaxBase::pitch(problem, 1) + first;
        const std::int64_t after = parts.empty() ? 0 : parts.back().first + parts.back().count;
        if (at + columns <= after) continue;
        const std::int64_t from = std::max(at, after);
        parts.push_back({from, at + columns - from});
      }
    }
  }
  return parts;
}

}  // namespace

std::span<const std::string_view> SoftmaxBase::input_kinds(const Problem&) const {
  return softmax_reference::input_kinds();
}

std::vector<std::byte> SoftmaxBase::input_pattern(const Problem& problem, int, std::string_view kind) const {
  return float_pattern(problem.dtype, problem.family->buffers(problem)[0].elements, 0, kind);
}

/// Itself; one column less, with the pitch kept, one row less; and with a scale that turns the order around.
std::vector<Problem> SoftmaxBase::verified_problems(const Problem& problem) const {
  const std::size_t columns = is_over_columns(problem) ? 2 : 1;
  const std::size_t rows = columns - 1;
  Problem narrower = problem;
  narrower.pitches = {pitch(problem, 0), pitch(problem, 1)};
  // Over columns packs lie side by side in each row, and their number is what may differ.
  const std::int64_t least = columns == 2 ? pack_elements(problem) : 1;
  narrower.extents[columns] = std::max<std::int64_t>(0, narrower.extents[columns] - least);
  Problem shorter = problem;
  shorter.extents[rows] -= shorter.extents[rows] > 0;
  Problem scaled = problem;
  scaled.scalars[0] = -0.5;
  return {problem, narrower, shorter, scaled};
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
    with_accumulator(traits, [&]<class Acc>(Acc) { factor = static_cast<double>(softmax_factors<Acc>(problem).factor); });
    return canonical::verify_softmax(computation, factor, patterns[0], parts, line_of, outputs[0]);
  }
  return softmax_reference::verify(computation, patterns[0], parts, line_of, outputs[0]);
}

}  // namespace hone
