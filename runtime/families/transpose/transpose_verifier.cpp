#include "runtime/families/transpose/transpose_verifier.h"

#include <hone/kernel_family.h>

#include "runtime/families/moved_elements.h"
#include "runtime/families/transpose/transpose_family.h"

namespace hone {
namespace {

Pitches pitches_of(const Problem& problem) {
  return moved::pitches_of(problem, problem.extents[2], problem.extents[1]);
}

}  // namespace

std::span<const std::string_view> TransposeVerifier::input_kinds(const Problem&) const {
  static constexpr std::string_view kKind = "random";
  return {&kKind, 1};
}

std::vector<std::byte> TransposeVerifier::input_pattern(const Problem& problem, int buffer, std::string_view) const {
  return moved::input_pattern(problem.family->buffers(problem)[static_cast<std::size_t>(buffer)].elements,
                              problem.dtype);
}

std::vector<Problem> TransposeVerifier::verified_problems(const Problem& problem) const {
  Problem pitched = problem;
  pitched.pitches = pitches_of(problem);
  std::vector<Problem> problems{problem};
  for (const std::size_t extent : {std::size_t{1}, std::size_t{2}}) {
    problems.push_back(pitched);
    --problems.back().extents[extent];
    if (is_in_place(problem)) --problems.back().extents[3 - extent];
  }
  if (is_in_place(problem)) problems.pop_back();
  return problems;
}

std::vector<ElementRange> TransposeVerifier::verified_parts(const Problem& problem, int buffer) const {
  return moved::spread_parts(problem.family->buffers(problem)[static_cast<std::size_t>(buffer)].elements);
}

std::string TransposeVerifier::verify(const Problem& problem, const Candidate&,
                                      std::span<const std::vector<std::byte>> patterns,
                                      std::span<const std::vector<std::byte>> outputs) const {
  const auto [in_pitch, out_pitch] = pitches_of(problem);
  const std::int64_t rows = problem.extents[1], columns = problem.extents[2];
  const std::int64_t parts = is_of_pairs(problem) ? 2 : 1;
  return moved::verify(verified_parts(problem, 1), outputs[0], patterns[0], info(problem.dtype).size_bytes,
                       [=](std::int64_t index) -> std::int64_t {
                         const std::int64_t row = index / parts % out_pitch, line = index / parts / out_pitch;
                         if (row >= rows) return -1;
                         const std::int64_t source = (line / columns * rows + row) * in_pitch + line % columns;
                         return source * parts + index % parts;
                       });
}

}  // namespace hone
