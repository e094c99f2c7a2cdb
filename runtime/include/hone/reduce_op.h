// ReduceOp: the operations of reductions, with their inputs, outputs and dtypes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <hone/dtype.h>

namespace hone {

enum class ReduceOp : std::uint8_t {
  sum, product, min, max, minmax, argmin, argmax, mean, mean_variance, sum_of_squares, l1_norm, l2_norm, max_norm,
  logsumexp, dot, any, all, count_nonzero, range
};

/// The main source of errors in an operation. It decides which inputs a winner is verified on.
enum class ReduceHazard : std::uint8_t { cancellation, factors, extremes, variance, exponentials, truth };

/// One row of the table of operations.
struct ReduceOpInfo {
  ReduceOp op;
  std::string_view name;
  int inputs = 1;               ///< arrays read
  int outputs = 1;              ///< values written, as neighbours
  bool needs_elements = false;  ///< an empty array has no result and is an error
  bool converts = false;        ///< the caller may choose accumulator and result dtype
  ReduceHazard hazard = ReduceHazard::cancellation;

  /// The functor in kernel_templates/, the file that it is in, and the numbers of accumulators and indices of its
  /// State.
  std::string_view functor;
  std::string_view header = "reduce_ops.cuh";
  int accumulators = 1;
  int indices = 0;
};

inline constexpr std::array kReduceOps = std::to_array<ReduceOpInfo>({
    {.op = ReduceOp::sum, .name = "sum", .converts = true, .functor = "Sum"},
    {.op = ReduceOp::product, .name = "product", .converts = true, .hazard = ReduceHazard::factors,
     .functor = "Product"},
    {.op = ReduceOp::min, .name = "min", .hazard = ReduceHazard::extremes, .functor = "Min"},
    {.op = ReduceOp::max, .name = "max", .hazard = ReduceHazard::extremes, .functor = "Max"},
    {.op = ReduceOp::minmax, .name = "minmax", .outputs = 2, .hazard = ReduceHazard::extremes, .functor = "MinMax",
     .header = "extreme_ops.cuh", .accumulators = 2},
    {.op = ReduceOp::argmin, .name = "argmin", .needs_elements = true, .hazard = ReduceHazard::extremes,
     .functor = "ArgMin", .header = "extreme_ops.cuh", .indices = 1},
    {.op = ReduceOp::argmax, .name = "argmax", .needs_elements = true, .hazard = ReduceHazard::extremes,
     .functor = "ArgMax", .header = "extreme_ops.cuh", .indices = 1},
    {.op = ReduceOp::mean, .name = "mean", .converts = true, .functor = "Mean", .header = "moment_ops.cuh"},
    {.op = ReduceOp::mean_variance, .name = "mean_variance", .outputs = 2, .converts = true,
     .hazard = ReduceHazard::variance, .functor = "MeanVariance", .header = "moment_ops.cuh", .accumulators = 3,
     .indices = 1},
    {.op = ReduceOp::sum_of_squares, .name = "sum_of_squares", .converts = true, .functor = "SumOfSquares"},
    {.op = ReduceOp::l1_norm, .name = "l1_norm", .converts = true, .functor = "L1Norm"},
    {.op = ReduceOp::l2_norm, .name = "l2_norm", .converts = true, .functor = "L2Norm"},
    {.op = ReduceOp::max_norm, .name = "max_norm", .hazard = ReduceHazard::extremes, .functor = "MaxNorm"},
    {.op = ReduceOp::logsumexp, .name = "logsumexp", .converts = true, .hazard = ReduceHazard::exponentials,
     .functor = "LogSumExp", .header = "logsumexp.cuh", .accumulators = 2},
    {.op = ReduceOp::dot, .name = "dot", .inputs = 2, .converts = true, .functor = "Dot"},
    {.op = ReduceOp::any, .name = "any", .hazard = ReduceHazard::truth, .functor = "Any"},
    {.op = ReduceOp::all, .name = "all", .hazard = ReduceHazard::truth, .functor = "All"},
    {.op = ReduceOp::count_nonzero, .name = "count_nonzero", .hazard = ReduceHazard::truth,
     .functor = "CountNonzero"},
    {.op = ReduceOp::range, .name = "range", .hazard = ReduceHazard::extremes, .functor = "Range",
     .header = "extreme_ops.cuh", .accumulators = 2},
});

constexpr const ReduceOpInfo& info(ReduceOp op) { return kReduceOps[static_cast<std::size_t>(op)]; }
constexpr std::string_view name(ReduceOp op) { return info(op).name; }

/// The operations as values of different types, so that dtypes are checked at compile time:
/// tuned_reduce(session, hone::sum, in, n, out, stream).
template <ReduceOp kOp>
struct ReduceTag {
  static constexpr ReduceOp op = kOp;
};
inline constexpr ReduceTag<ReduceOp::sum> sum;
inline constexpr ReduceTag<ReduceOp::product> product;
inline constexpr ReduceTag<ReduceOp::min> min;
inline constexpr ReduceTag<ReduceOp::max> max;
inline constexpr ReduceTag<ReduceOp::minmax> minmax;
inline constexpr ReduceTag<ReduceOp::argmin> argmin;
inline constexpr ReduceTag<ReduceOp::argmax> argmax;
inline constexpr ReduceTag<ReduceOp::mean> mean;
inline constexpr ReduceTag<ReduceOp::mean_variance> mean_variance;  ///< the variance of the population: Σ … ÷ n
inline constexpr ReduceTag<ReduceOp::sum_of_squares> sum_of_squares;
inline constexpr ReduceTag<ReduceOp::l1_norm> l1_norm;
inline constexpr ReduceTag<ReduceOp::l2_norm> l2_norm;
inline constexpr ReduceTag<ReduceOp::max_norm> max_norm;
inline constexpr ReduceTag<ReduceOp::logsumexp> logsumexp;
inline constexpr ReduceTag<ReduceOp::dot> dot;
inline constexpr ReduceTag<ReduceOp::any> any;
inline constexpr ReduceTag<ReduceOp::all> all;
inline constexpr ReduceTag<ReduceOp::count_nonzero> count_nonzero;
inline constexpr ReduceTag<ReduceOp::range> range;

/// The ReduceOp called `name`. Throws Error(not_found) that lists the known names.
ReduceOp parse_reduce_op(std::string_view name);

/// True if the operation is defined for elements of `dtype`: logsumexp for floats only, all others for every dtype.
constexpr bool reduce_supports(ReduceOp op, DType dtype) {
  return op != ReduceOp::logsumexp || info(dtype).is_floating();
}

/// The dtype in which sums of `dtype` are accumulated: f32 for smaller floats, 64 bits for integers. Sums of integers
/// wrap modulo 2^64, and so does |x| of the smallest i64 in an l1_norm; the max_norm and range of i64 are u64, which
/// holds it. Squares may overflow before their root does: the l2_norm of {3e30f, 4e30f} is infinite, unless the
/// accumulator is f64.
constexpr DType wide_dtype(DType dtype) {
  switch (info(dtype).kind) {
    case DTypeKind::floating:
      return dtype == DType::f64 ? DType::f64 : DType::f32;
    case DTypeKind::unsigned_integer:
      return DType::u64;
    default:
      return DType::i64;
  }
}

/// The accumulator's dtype if the caller chooses none.
constexpr DType reduce_accumulator_dtype(ReduceOp op, DType in) {
  const DTypeInfo& element = info(in);
  switch (op) {
    case ReduceOp::min:
    case ReduceOp::max:
    case ReduceOp::minmax:
    case ReduceOp::range:
    case ReduceOp::argmin:
    case ReduceOp::argmax:
      if (element.is_floating()) return wide_dtype(in);
      return element.size_bytes < 4 ? DType::i32 : in;
    case ReduceOp::any:
    case ReduceOp::all:
      return DType::u32;
    case ReduceOp::count_nonzero:
      return DType::i64;
    case ReduceOp::mean:
      return !element.is_floating() && element.size_bytes == 8 ? DType::f64 : wide_dtype(in);
    case ReduceOp::mean_variance:
      return element.is_floating() ? wide_dtype(in) : DType::f64;
    case ReduceOp::l2_norm:
      return element.is_floating() || element.size_bytes <= 2 ? wide_dtype(in) : DType::f64;
    case ReduceOp::max_norm:
      if (in == DType::i64) return DType::u64;
      if (element.kind == DTypeKind::signed_integer) return element.size_bytes <= 2 ? DType::i32 : DType::i64;
      return !element.is_floating() && element.size_bytes <= 4 ? DType::u32 : wide_dtype(in);
    default:
      return wide_dtype(in);
  }
}

/// True if the bits of the result depend on the order in which elements are combined: where a floating accumulator is
/// rounded. Others are the same under both Numerics. Integers of at most 16 bits have exact moments.
constexpr bool reduce_depends_on_order(ReduceOp op, DType in, DType accumulator) {
  const bool has_exact_moments = op == ReduceOp::mean_variance && !info(in).is_floating() && info(in).size_bytes <= 2;
  return info(op).converts && info(accumulator).is_floating() && !has_exact_moments;
}

/// The dtype of the result if the caller chooses none.
constexpr DType reduce_result_dtype(ReduceOp op, DType in) {
  switch (op) {
    case ReduceOp::min:
    case ReduceOp::max:
    case ReduceOp::minmax:
      return in;
    case ReduceOp::range:
      if (info(in).is_floating() && !info(in).has_infinity) return wide_dtype(in);  // it may be too large
      [[fallthrough]];
    case ReduceOp::max_norm:
      if (in == DType::i64) return DType::u64;
      return info(in).is_floating() ? in : wide_dtype(in);
    case ReduceOp::argmin:
    case ReduceOp::argmax:
      return DType::i64;
    case ReduceOp::any:
    case ReduceOp::all:
      return DType::boolean;
    case ReduceOp::mean:
    case ReduceOp::mean_variance:
    case ReduceOp::l2_norm:
      return info(in).is_floating() ? wide_dtype(in) : DType::f64;
    default:
      return reduce_accumulator_dtype(op, in);
  }
}

/// The dtype of the result if the caller chooses only the accumulator: a floating accumulator makes a result floating
/// that would have been an integer.
constexpr DType reduce_result_dtype(ReduceOp op, DType in, DType accumulator) {
  const DType usual = reduce_result_dtype(op, in);
  return info(op).converts && !info(usual).is_floating() && info(accumulator).is_floating() ? accumulator : usual;
}

/// True if a caller may choose `accumulator` for elements of `in`: f32 or f64, no narrower than the elements, or for
/// integers also i64 and u64, and only if the operation `converts`. Magnitudes and means are not defined modulo 2^64,
/// so they need an accumulator that holds each element.
constexpr bool reduce_accepts_accumulator(ReduceOp op, DType in, DType accumulator) {
  if (accumulator == reduce_accumulator_dtype(op, in)) return true;
  if (!info(op).converts) return false;
  if (accumulator == DType::f64) return true;
  if (accumulator == DType::f32) return info(in).size_bytes <= 4 && op != ReduceOp::mean_variance;
  if (info(in).is_floating() || (accumulator != DType::i64 && accumulator != DType::u64)) return false;
  if (op == ReduceOp::mean_variance || op == ReduceOp::l2_norm) return false;
  if (op != ReduceOp::l1_norm && op != ReduceOp::mean) return true;
  return accumulator == DType::i64 ? in != DType::u64 : info(in).kind != DTypeKind::signed_integer;
}

/// True if a caller may choose `result`: any float, or any integer where the default result is an integer, and only if
/// the operation `converts`.
constexpr bool reduce_accepts_result(ReduceOp op, DType in, DType accumulator, DType result) {
  const DType usual = reduce_result_dtype(op, in, accumulator);
  if (result == usual) return true;
  if (!info(op).converts || result == DType::boolean) return false;
  return info(result).is_floating() || !info(usual).is_floating();
}
constexpr bool reduce_accepts_result(ReduceOp op, DType in, DType result) {
  return reduce_accepts_result(op, in, reduce_accumulator_dtype(op, in), result);
}

}  // namespace hone
