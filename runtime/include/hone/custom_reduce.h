// CustomReduction: a reduction that the caller writes, as CUDA C++ expressions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <hone/session.h>
#include <hone/stream.h>

namespace hone {

/// The source of a reduction. Expressions see `Acc`, the accumulator's type, and whatever `declarations` declare; they
/// must not need headers. Compilers' messages count lines from the start of each text and name it "<name>.<field>".
struct ReduceExpressions {
  std::string name;            ///< letters, digits and underscores; in messages and in the cache
  std::string map = "x";       ///< what element `x` at index `i` becomes; 16-bit floats come as float, bool as bool
  std::string combine = {};    ///< of `a` and `b`, two Acc: associative and commutative
  std::string identity = {};   ///< an Acc that combine() leaves the other one with
  std::string finish = "acc";  ///< the result, of `acc` and the number of elements `n`
  std::string declarations = {};  ///< functions and types, at namespace scope

  /// How far a result may lie from that of the plain kernel it is verified with, as a share of the larger one. 0: what
  /// sums of positive numbers may be off by in the accumulator's precision. Integers must be equal.
  double relative_tolerance = 0;

  bool operator==(const ReduceExpressions&) const = default;
};

/// Expressions with their accumulator and result types. Cheap to copy; equal expressions share one KernelFamily
/// ("reduce_custom"), which lives as long as the process; its digest, and so the key of its winners in the cache,
/// includes every expression. Thread-safe.
class CustomReduction {
 public:
  /// `accumulator`: f32, f64, i32, u32, i64 or u64; `result`: any dtype, without it the accumulator's. Nothing is
  /// compiled yet. Throws Error(invalid_argument) for a text that is not one expression, a name that is none and a
  /// type that cannot be.
  CustomReduction(const ReduceExpressions& expressions, DType accumulator, std::optional<DType> result = {});

  DType accumulator_dtype() const { return accumulator_; }
  DType result_dtype() const { return result_; }

  /// Extents {n, 1, 1}, buffers {in[n], out[1]}.
  Problem problem(DType dtype, std::int64_t n, std::uint32_t alignment = kMaxAlignment) const;

 private:
  const class CustomFamily* family_;
  DType accumulator_, result_;
};

/// Writes finish(combine over i of map(in[i], i), n) to *out, one value of reduction.result_dtype(); of an empty array
/// finish(identity, 0). The order of combination is fixed for one winner and one alignment. Tuned, verified, cached and
/// dispatched as tuned_reduce(), with the same errors, and compile_failed with the compiler's message for expressions
/// that do not compile; a tuning throws invalid_argument for a combine() or identity that makes results depend on the
/// order. Winners are verified on positive numbers (1 ≤ x < 2; integers of all values).
Choice tuned_reduce(Session& session, const CustomReduction& reduction, DType dtype, const void* in, std::int64_t n,
                    void* out, Stream stream);

/// The same, with the element type and the type of *out, which must be the result's, checked.
template <class T, class Result>
Choice tuned_reduce(Session& session, const CustomReduction& reduction, const T* in, std::int64_t n, Result* out,
                    Stream stream);

namespace detail {
/// Throws Error(invalid_argument) that names both types.
void require_result_dtype(const CustomReduction& reduction, DType out);
}  // namespace detail

template <class T, class Result>
Choice tuned_reduce(Session& session, const CustomReduction& reduction, const T* in, std::int64_t n, Result* out,
                    Stream stream) {
  detail::require_result_dtype(reduction, kDTypeOf<Result>);
  return tuned_reduce(session, reduction, kDTypeOf<T>, static_cast<const void*>(in), n, static_cast<void*>(out),
                      stream);
}

}  // namespace hone
