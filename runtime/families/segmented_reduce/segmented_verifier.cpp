#include "runtime/families/segmented_reduce/segmented_verifier.h"

#include <algorithm>

#include "runtime/families/segmented_reduce/segment_offsets.h"
#include "runtime/families/segmented_reduce/segment_reference.h"
#include "runtime/families/segmented_reduce/segmented_reduce_family.h"

namespace hone {

std::span<const std::string_view> SegmentedVerifier::input_kinds(const Problem& problem) const {
  return segment_reference::input_kinds(reduce_spec_of(problem));
}

std::vector<std::byte> SegmentedVerifier::input_pattern(const Problem& problem, int buffer,
                                                        std::string_view kind) const {
  return segment_reference::input_pattern(reduce_spec_of(problem), family_.arrays_of(problem), buffer, kind);
}

std::vector<Problem> SegmentedVerifier::verified_problems(const Problem& problem) const {
  // The small one is verified whole, so that each awkward element counts.
  constexpr std::int64_t kFewSegments = 1021;
  constexpr std::int64_t kFewElements = 40009;
  const auto of = [&](std::int64_t segments, std::int64_t elements) {
    Problem other = problem;
    other.extents = {std::max<std::int64_t>(segments, 0), std::max<std::int64_t>(elements, 0), 1};
    return other;
  };
  return {problem, of(problem.extents[0] - 1, problem.extents[1] - 1),
          of(std::min(problem.extents[0], kFewSegments), std::min(problem.extents[1], kFewElements))};
}

std::vector<ElementRange> SegmentedVerifier::verified_parts(const Problem& problem, int) const {
  std::vector<ElementRange> parts = segment_offsets::verified(problem.extents[0], problem.extents[1]);
  const int outputs = kReduceOps[problem.operation].outputs;
  for (ElementRange& part : parts) {
    part.first *= outputs;
    part.count *= outputs;
  }
  return parts;
}

std::string SegmentedVerifier::verify(const Problem& problem, const Candidate& candidate,
                                      std::span<const std::vector<std::byte>> patterns,
                                      std::span<const std::vector<std::byte>> outputs) const {
  return segment_reference::verify(reduce_spec_of(problem), family_.arrays_of(problem),
                                   family_.longest_chain(problem, candidate), patterns, outputs[0]);
}

}  // namespace hone
