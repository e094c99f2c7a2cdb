// How segmented reductions are verified.
#include <algorithm>
#include <map>

#include "runtime/families/reduce/reduce_reference.h"
#include "runtime/families/segmented_reduce/segment_offsets.h"
#include "runtime/families/segmented_reduce/segmented_reduce_family.h"

namespace hone {
namespace {

/// "power_law" and the like with what the reductions measure, then the awkward elements in segments of a power law.
std::vector<std::string_view> kinds_of(const ReduceSpec& spec) {
  const auto lengths = segment_offsets::kinds();
  std::vector<std::string_view> kinds(lengths.begin(), lengths.end());
  const auto elements = reduce_reference::input_kinds(spec).subspan(1);
  kinds.insert(kinds.end(), elements.begin(), elements.end());
  return kinds;
}

}  // namespace

std::span<const std::string_view> SegmentedReduceFamily::input_kinds(const Problem& problem) const {
  // The kinds of elements are lists that live for ever; there is one of ours for each.
  static const auto lists = [] {
    std::map<const std::string_view*, std::vector<std::string_view>> kinds;
    for (const ReduceOpInfo& op : kReduceOps)
      for (const DTypeInfo& dtype : kDTypes)
        for (const DType accumulator : {reduce_accumulator_dtype(op.op, dtype.dtype), DType::f64})
          for (const Numerics numerics : {Numerics::fast, Numerics::reproducible}) {
            const ReduceSpec each{
                .op = op.op, .dtype = dtype.dtype, .accumulator = accumulator, .numerics = numerics};
            kinds.try_emplace(reduce_reference::input_kinds(each).data(), kinds_of(each));
          }
    return kinds;
  }();
  return lists.at(reduce_reference::input_kinds(reduce_spec_of(problem)).data());
}

std::vector<std::byte> SegmentedReduceFamily::input_pattern(const Problem& problem, int buffer,
                                                            std::string_view kind) const {
  const auto lengths = segment_offsets::kinds();
  const bool is_of_lengths = std::find(lengths.begin(), lengths.end(), kind) != lengths.end();
  const ReduceSpec spec = reduce_spec_of(problem);
  const auto [segments, elements, unused] = problem.extents;
  if (buffer == 1) return segment_offsets::make(is_of_lengths ? kind : lengths.front(), offsets_, segments, elements);
  return reduce_reference::input_pattern(spec, 0, elements,
                                         is_of_lengths ? reduce_reference::input_kinds(spec).front() : kind);
}

std::vector<Problem> SegmentedReduceFamily::verified_problems(const Problem& problem) const {
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

std::vector<ElementRange> SegmentedReduceFamily::verified_lines(const Problem& problem) const {
  return segment_offsets::verified(problem.extents[0], problem.extents[1]);
}

std::function<LinesVerifier::Line(std::int64_t)> SegmentedReduceFamily::lines(
    const Problem&, ArrayBytes patterns) const {
  return [offsets = segment_offsets::Offsets(offsets_, patterns[1])](std::int64_t segment) {
    return Line{.elements = offsets[segment + 1] - offsets[segment], .first = offsets[segment]};
  };
}

}  // namespace hone
