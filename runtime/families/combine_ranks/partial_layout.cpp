#include "runtime/families/combine_ranks/partial_layout.h"

#include <array>

#include <fmt/format.h>

namespace hone {
namespace {

constexpr std::int64_t kIndexBytes = sizeof(std::int64_t);

constexpr std::int64_t aligned_up(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }

/// In the order of ReduceOp. {0} stands for the type of values, {1} for whether NaNs are ignored.
constexpr std::array<DividedOp, kReduceOps.size()> kDivided{{
    {ReduceOp::sum, "Scalar<{0}, hone::monoid::Plus>"},
    {ReduceOp::product, "Scalar<{0}, hone::monoid::Times>"},
    {ReduceOp::min, "Scalar<{0}, hone::monoid::Min<{1}>>"},
    {ReduceOp::max, "Scalar<{0}, hone::monoid::Max<{1}>>"},
    {ReduceOp::minmax, "Extremes<{0}, {1}, false>"},
    {ReduceOp::argmin, "Located<{0}, false>"},
    {ReduceOp::argmax, "Located<{0}, true>"},
    {ReduceOp::sum, "Mean<{0}>"},
    {ReduceOp::mean_variance, "Moments<{0}>"},
    {ReduceOp::sum_of_squares, "Scalar<{0}, hone::monoid::Plus>"},
    {ReduceOp::l1_norm, "Scalar<{0}, hone::monoid::Plus>"},
    {ReduceOp::sum_of_squares, "Scalar<{0}, hone::monoid::Plus, true>"},
    {ReduceOp::max_norm, "Scalar<{0}, hone::monoid::Max<{1}>>"},
    {ReduceOp::logsumexp, "LogSumExp<{0}>"},
    {ReduceOp::dot, "Scalar<{0}, hone::monoid::Plus>"},
    {ReduceOp::any, "Scalar<{0}, hone::monoid::BitOr>"},
    {ReduceOp::all, "Scalar<{0}, hone::monoid::BitAnd>"},
    {ReduceOp::count_nonzero, "Scalar<{0}, hone::monoid::Plus>"},
    {ReduceOp::minmax, "Extremes<{0}, {1}, true>"},
}};

bool is_arg(ReduceOp op) { return op == ReduceOp::argmin || op == ReduceOp::argmax; }

}  // namespace

std::string ranks_fault(std::int64_t ranks) {
  if (ranks >= 1 && ranks <= kMostRanks) return "";
  return fmt::format("there are at least one rank and at most {}, not {} ranks", kMostRanks, ranks);
}

const DividedOp& divided(ReduceOp op) { return kDivided[static_cast<std::size_t>(op)]; }

ReduceSpec partial_spec(const ReduceSpec& spec) {
  ReduceSpec partial{
      .op = divided(spec.op).local, .dtype = spec.dtype, .nan = spec.nan, .numerics = spec.numerics};
  if (!info(partial.op).converts) return partial;
  partial.accumulator = partial.result = spec.accumulator_dtype();
  return partial;
}

PartialLayout PartialLayout::of(const ReduceSpec& spec, std::int64_t rows) {
  const ReduceSpec partial = partial_spec(spec);
  PartialLayout layout{.value = is_arg(spec.op) ? spec.dtype : partial.result_dtype(),
                       .values_per_row = info(partial.op).outputs,
                       .has_index = is_arg(spec.op)};
  layout.has_count = layout.has_index || spec.op == ReduceOp::mean || spec.op == ReduceOp::mean_variance;
  const auto value_bytes = static_cast<std::int64_t>(info(layout.value).size_bytes);
  layout.index_at = aligned_up(rows * layout.values_per_row * value_bytes, kIndexBytes);
  layout.count_at = layout.index_at + (layout.has_index ? rows * kIndexBytes : 0);
  layout.block_bytes = aligned_up(layout.count_at + (layout.has_count ? kIndexBytes : 0), 16);
  return layout;
}

}  // namespace hone
