#include "runtime/families/copy/copy_verifier.h"

#include <hone/kernel_family.h>

#include "runtime/families/moved_elements.h"

namespace hone {
namespace {

Pitches pitches_of(const Problem& problem) {
  return moved::pitches_of(problem, problem.extents[1], problem.extents[1]);
}

}  // namespace

std::span<const std::string_view> CopyVerifier::input_kinds(const Problem&) const {
  static constexpr std::string_view kKind = "random";
  return {&kKind, 1};
}

std::vector<std::byte> CopyVerifier::input_pattern(const Problem& problem, int buffer, std::string_view) const {
  return moved::input_pattern(problem.family->buffers(problem)[static_cast<std::size_t>(buffer)].elements,
                              problem.dtype);
}

/// Rows at every address that a winner serves: at this problem's pitches, and, of several, an element closer.
std::vector<Problem> CopyVerifier::verified_problems(const Problem& problem) const {
  const bool has_one_row = problem.extents[0] == 1;
  Problem shorter = problem;
  if (!has_one_row) shorter.pitches = pitches_of(problem);
  --shorter.extents[1];
  if (has_one_row) return {problem, shorter};
  Problem closer = shorter;
  for (std::int64_t& pitch : closer.pitches) --pitch;
  return {problem, shorter, closer};
}

std::vector<ElementRange> CopyVerifier::verified_parts(const Problem& problem, int buffer) const {
  return moved::spread_parts(problem.family->buffers(problem)[static_cast<std::size_t>(buffer)].elements);
}

std::string CopyVerifier::verify(const Problem& problem, const Candidate&,
                                 std::span<const std::vector<std::byte>> patterns,
                                 std::span<const std::vector<std::byte>> outputs) const {
  const auto [in_pitch, out_pitch] = pitches_of(problem);
  const std::int64_t columns = problem.extents[1];
  return moved::verify(verified_parts(problem, 1), outputs[0], patterns[0], info(problem.dtype).size_bytes,
                       [=](std::int64_t index) -> std::int64_t {
                         const std::int64_t column = index % out_pitch;
                         return column < columns ? index / out_pitch * in_pitch + column : -1;
                       });
}

}  // namespace hone
