// tuned_reduce() of a CustomReduction, which the caller writes as CUDA C++ expressions.
#pragma once

#include <cstdint>

#include <hone/custom_reduction.h>
#include <hone/session.h>
#include <hone/stream.h>

namespace hone {

/// Writes finish(combine over all i of map(in[i], i), n) to *out: one value of reduction.result_dtype(). An empty array
/// gives finish(identity, 0). The order of combination is fixed for one winner and one alignment of `in`.
///
/// The call is tuned, verified, cached and dispatched as tuned_reduce() of an operation is: the same stream behaviour,
/// thread safety and errors. Besides, it throws compile_failed, with the compiler's message, for expressions that do
/// not compile. A tuning throws invalid_argument if the results of `combine` and `identity` depend on the order.
/// Winners are verified on positive numbers (1 ≤ x < 2; integers of all values).
Choice tuned_reduce(Session& session, const CustomReduction& reduction, DType dtype, const void* in, std::int64_t n,
                    void* out, Stream stream);

/// The same with the dtypes from the pointers. Throws invalid_argument unless Result is reduction.result_dtype().
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
