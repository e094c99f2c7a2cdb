// CustomReduction: a reduction that the caller writes, as CUDA C++ expressions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <hone/dtype.h>
#include <hone/problem.h>

namespace hone {

/// The source of a reduction, as CUDA C++ expressions. They may use `Acc`, the accumulator's type, and the names in
/// `declarations`, but include no headers. Messages of the compiler call each text "<name>.<field>" and count its
/// lines.
struct ReduceExpressions {
  std::string name;            ///< letters, digits and underscores; names it in messages and in the cache
  std::string map = "x";       ///< maps element `x` at index `i` to an Acc; small floats come as float, bool as bool
  std::string combine = {};    ///< combines `a` and `b`, both Acc; must be associative and commutative
  std::string identity = {};   ///< the identity of `combine`, an Acc
  std::string finish = "acc";  ///< computes the result from `acc` and the number of elements `n`
  std::string declarations = {};  ///< functions and types, at namespace scope

  /// The largest relative difference that a result may have from that of the reference kernel. 0 allows the rounding
  /// error of a sum of positive numbers in the accumulator's precision. Integers must be equal. Finite, not negative.
  double relative_tolerance = 0;

  bool operator==(const ReduceExpressions&) const = default;
};

/// A reduction by expressions, with its accumulator and result dtypes. Cheap to copy. Equal expressions share one
/// KernelFamily ("reduce_custom"), which lives as long as the process. The digest of the family covers every
/// expression, and so does the key of its winners in the cache. Thread-safe.
class CustomReduction {
 public:
  /// `accumulator` is f32, f64, i32, u32, i64 or u64; `result` is any dtype, by default the accumulator's. Compiles
  /// nothing. Throws Error(invalid_argument) for a text that is not one expression, an empty or malformed name, a
  /// tolerance that is negative or not finite, and any other accumulator.
  CustomReduction(const ReduceExpressions& expressions, DType accumulator, std::optional<DType> result = {});

  DType accumulator_dtype() const { return accumulator_; }
  DType result_dtype() const { return result_; }

  /// The Problem of a tuned_reduce() call with this reduction: extents {n, 1, 1}, buffers {in[n], out[1]}. `alignment`
  /// is that of `in`, in bytes.
  Problem problem(DType dtype, std::int64_t n, std::uint32_t alignment = kMaxAlignment) const;

 private:
  const class CustomFamily* family_;
  DType accumulator_, result_;
};

}  // namespace hone
