// CustomReduction: a reduction that the caller writes, as CUDA C++ expressions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <hone/dtype.h>
#include <hone/problem.h>

namespace hone {

/// The source of a reduction, as CUDA C++ expressions. They may use `Acc`, the accumulator's type, and the names in
/// `declarations`, but no headers. Compilers' messages count lines from the start of each text and name it "<name>.<field>".
struct ReduceExpressions {
  std::string name;            ///< letters, digits and underscores; in messages and in the cache
  std::string map = "x";       ///< what element `x` at index `i` becomes; 16-bit floats come as float, bool as bool
  std::string combine = {};    ///< combines `a` and `b`, both Acc; associative and commutative
  std::string identity = {};   ///< an Acc that leaves the other operand of combine as it is
  std::string finish = "acc";  ///< the result, of `acc` and the number of elements `n`
  std::string declarations = {};  ///< functions and types, at namespace scope

  /// The largest relative difference between a result and that of the reference kernel. 0 stands for the rounding error
  /// of a sum of positive numbers in the accumulator's precision. Integers must be equal.
  double relative_tolerance = 0;

  bool operator==(const ReduceExpressions&) const = default;
};

/// A reduction by expressions, with its accumulator and result dtypes. Cheap to copy; equal expressions share one KernelFamily
/// ("reduce_custom"), which lives as long as the process; its digest, and so the key of its winners in the cache,
/// includes every expression. Thread-safe.
class CustomReduction {
 public:
  /// `accumulator`: f32, f64, i32, u32, i64 or u64; `result`: any dtype, without it the accumulator's. Does not
  /// compile. Throws Error(invalid_argument) for a text that is not a single expression, an empty or malformed name, and
  /// an accumulator dtype that is not in the list.
  CustomReduction(const ReduceExpressions& expressions, DType accumulator, std::optional<DType> result = {});

  DType accumulator_dtype() const { return accumulator_; }
  DType result_dtype() const { return result_; }

  /// The Problem of a tuned_reduce() call with this reduction: extents {n, 1, 1}, buffers {in[n], out[1]}.
  Problem problem(DType dtype, std::int64_t n, std::uint32_t alignment = kMaxAlignment) const;

 private:
  const class CustomFamily* family_;
  DType accumulator_, result_;
};

}  // namespace hone
