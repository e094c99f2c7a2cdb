#include <hone/sdk/family_table.h>

#include <algorithm>
#include <array>

#include <hone/copy_spec.h>
#include <hone/reduce_spec.h>
#include <hone/rms_norm.h>
#include <hone/softmax_spec.h>
#include <hone/transpose_spec.h>

#include "runtime/families/built_in_family.h"

namespace hone {
namespace {

Problem call_of_array(const Problem& problem) {
  return reduce_problem(reduce_spec_of(problem), problem.extents[0], problem.alignment);
}

Problem call_of_rows(const Problem& problem) {
  const RowsShape shape{.rows = problem.extents[0], .columns = problem.extents[1], .pitch = problem.pitches[0]};
  return reduce_rows_problem(reduce_spec_of(problem), shape, problem.alignment);
}

Problem call_of_columns(const Problem& problem) {
  const Extents& extents = problem.extents;
  const ColumnsShape shape{
      .outer = extents[0], .reduced = extents[1], .inner = extents[2], .pitch = problem.pitches[0]};
  return reduce_columns_problem(reduce_spec_of(problem), shape, problem.alignment);
}

template <DType kOffsets>
const KernelFamily& segments_family() {
  return segmented_reduce_family(kOffsets);
}

Problem call_of_segments(const Problem& problem) {
  Problem called =
      segmented_reduce_problem(reduce_spec_of(problem), DType::i32, problem.extents[0], problem.extents[1]);
  called.family = problem.family;
  return called;
}

/// Accumulators, results, pitches and the alignment of rows have one name each.
Problem call_of_many_rows(const Problem& problem) {
  const auto& family = static_cast<const BuiltInFamily&>(*problem.family);
  Problem called = problem;
  if (called.result == called.dtype) called.result.reset();
  called.pitches = named_pitches(problem.pitches, family.rows(problem, 0).length, family.rows(problem, 1).length);
  called = with_alignment_of_rows(called, problem.alignment);
  // The family refuses all accumulators but its own, which has no name.
  if (called.accumulator && family.refuse(called).empty()) called.accumulator.reset();
  return called;
}

/// Operations are transpose, transpose_in_place, and both of pairs.
Problem call_of_transpose(const Problem& problem) {
  const TransposeSpec spec{.element_bytes = info(problem.dtype).size_bytes * (problem.operation < 2 ? 1 : 2),
                           .rows = problem.extents[1],
                           .columns = problem.extents[2],
                           .batch = problem.extents[0],
                           .in_pitch = problem.pitches[0],
                           .out_pitch = problem.pitches[1]};
  Problem called = transpose_problem(spec, problem.alignment, problem.operation % 2 == 1);
  called.accumulator = problem.accumulator;
  if (problem.result != problem.dtype) called.result = problem.result;
  called.nan = problem.nan;
  return called;
}

constexpr std::string_view kShapes = "2^4..2^24:2^4x2^4..2^24:2^4@2^12..2^26";

const auto& kFamilies = never_destroyed(std::array{
    FamilyRow{&reduce_family, "sum", "f32", "2^10..2^24", &call_of_array},
    FamilyRow{&reduce_rows_family, "sum", "f32", kShapes, &call_of_rows},
    FamilyRow{&reduce_columns_family, "sum", "f32", kShapes, &call_of_columns},
    FamilyRow{&segments_family<DType::i32>, "sum", "f32", "2^10..2^22:2^4x2^14..2^26:2^4", &call_of_segments},
    FamilyRow{&segments_family<DType::i64>, "sum", "f32", "2^10..2^22:2^4x2^14..2^26:2^4", &call_of_segments},
    FamilyRow{&softmax_family, "softmax", "f32", kShapes, &call_of_many_rows},
    FamilyRow{&softmax_columns_family, "softmax", "f32", kShapes, &call_of_many_rows},
    FamilyRow{&rms_norm_family,
              "weighted",
              "f16",
              "2^4..2^16:2^4x2^6..2^14:2^2",
              &call_of_many_rows,
              {{{"quick", "weighted", "f16", "2^12x2^12"},
                {"standard", "weighted,weighted_add", "f16,bf16,f32", "2^4..2^20:2^4x2^6..2^14:2^4@2^20..2^28"},
                {"full", "every", "f16,bf16,f32", "2^0..2^24:2^4x2^4..2^20:2^2@2^12..2^28"}}}},
    FamilyRow{&transpose_family, "transpose", "u32", kShapes, &call_of_transpose},
    FamilyRow{&copy_family, "copy", "u32", "1x2^10..2^26:2^2"},
});

}  // namespace

Families built_in_families() { return kFamilies; }

bool is_built_in(const KernelFamily& family) {
  return std::ranges::any_of(kFamilies, [&](const FamilyRow& row) { return &row.family() == &family; });
}

}  // namespace hone
