// FusedReduction: several reductions of one array, which is read once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include <hone/problem.h>
#include <hone/reduce_op.h>

namespace hone {

/// A list of reductions that one kernel computes in a single pass over an array. Cheap to copy. Equal lists share one
/// KernelFamily ("reduce_fused"), which lives as long as the process. Thread-safe.
class FusedReduction {
 public:
  static constexpr std::size_t kMost = 8;  ///< the most operations of a list

  /// Throws Error(invalid_argument) for an empty list, more than kMost operations, an operation that is listed twice,
  /// and dot, which takes a second array; the message names the operation.
  explicit FusedReduction(std::span<const ReduceOp> ops);
  FusedReduction(std::initializer_list<ReduceOp> ops) : FusedReduction(std::span(ops.begin(), ops.size())) {}

  std::span<const ReduceOp> ops() const;

  /// The Problem of a tuned_reduce() call with this list: extents {n, 1, 1}; buffers {in[n]} and, for each operation,
  /// info(op).outputs values of reduce_result_dtype(op, dtype). `alignment` is that of `in`, in bytes.
  Problem problem(DType dtype, std::int64_t n, std::uint32_t alignment = kMaxAlignment,
                  NanPolicy nan = NanPolicy::propagate) const;

 private:
  const class FusedFamily* family_;
};

}  // namespace hone
