// tuned_reduce(): reduces an array in device memory to one or two values.
#pragma once

#include <cstdint>

#include <hone/reduce_spec.h>
#include <hone/session.h>
#include <hone/stream.h>

namespace hone {

/// Reduces in[0 … n) and writes info(spec.op).outputs values to *out, in the order of `stream`. `in` and `out` are
/// memory of the session's device.
///
/// n may be beyond 2^32. For n = 0 the identity is written: 0 for sums, norms and counts, 1 for products, the largest
/// or smallest value (±inf for floats) for min and max, −inf for logsumexp, NaN for means and variances; argmin and
/// argmax of an empty array are an error, and `in` may be null. `in` must be aligned to its element. The lowest index
/// wins a tie. One winner gives the same bits from run to run for one alignment; with Numerics::reproducible every one
/// does, on every device. Neither waits nor allocates on `stream`. Thread-safe. docs/reductions.md has the dtypes,
/// docs/numerics.md the bounds of the errors.
///
/// Throws Error: invalid_argument for a null or misaligned pointer, an output that overlaps an input, a negative n, an
/// empty array where there is no result, and dtypes that do not go together; otherwise as Session::launch().
Choice tuned_reduce(Session& session, const ReduceSpec& spec, const void* in, std::int64_t n, void* out, Stream stream);

/// The same for Σ a[i]·b[i]; spec.op must be dot. It has full speed if the addresses differ by a multiple of 16 bytes.
Choice tuned_dot(Session& session, const ReduceSpec& spec, const void* a, const void* b, std::int64_t n, void* out,
                 Stream stream);

/// Reduces as tuned_reduce() does, copies the result to `*out_host` in host memory, and waits for `stream`. Allocates
/// device memory for the result, and must not be called while `stream` is being captured.
Choice tuned_reduce_and_wait(Session& session, const ReduceSpec& spec, const void* in, std::int64_t n, void* out_host,
                             Stream stream);

namespace detail {
/// The spec of a typed call: the type of *out chooses the result dtype.
template <ReduceOp kOp, class T, class Result>
constexpr ReduceSpec spec_of(NanPolicy nan, Numerics numerics) {
  static_assert(reduce_supports(kOp, kDTypeOf<T>), "this reduction is not defined for this element type");
  static_assert(reduce_accepts_result(kOp, kDTypeOf<T>, kDTypeOf<Result>),
                "this reduction of these elements cannot be stored as the type of *out");
  return {.op = kOp, .dtype = kDTypeOf<T>, .nan = nan, .result = kDTypeOf<Result>, .numerics = numerics};
}
}  // namespace detail

/// The C++ type of the result if the caller chooses none.
template <class Tag, class T>
using reduce_result_t = element_t<reduce_result_dtype(Tag::op, kDTypeOf<T>)>;

/// The same with dtypes from the pointers, checked at compile time: tuned_reduce(session, hone::sum, in, n, out,
/// stream).
template <ReduceOp kOp, class T, class Result>
Choice tuned_reduce(Session& session, ReduceTag<kOp>, const T* in, std::int64_t n, Result* out, Stream stream,
                    NanPolicy nan = NanPolicy::propagate, Numerics numerics = Numerics::fast) {
  static_assert(info(kOp).inputs == 1, "use tuned_dot() for the product of two arrays");
  return tuned_reduce(session, detail::spec_of<kOp, T, Result>(nan, numerics), in, n, out, stream);
}

template <class T, class Result>
Choice tuned_dot(Session& session, const T* a, const T* b, std::int64_t n, Result* out, Stream stream,
                 NanPolicy nan = NanPolicy::propagate, Numerics numerics = Numerics::fast) {
  return tuned_dot(session, detail::spec_of<ReduceOp::dot, T, Result>(nan, numerics), a, b, n, out, stream);
}

/// Returns the result itself: float s = tuned_reduce_and_wait(session, hone::sum, in, n, stream).
template <ReduceOp kOp, class T>
reduce_result_t<ReduceTag<kOp>, T> tuned_reduce_and_wait(Session& session, ReduceTag<kOp>, const T* in, std::int64_t n,
                                                         Stream stream, NanPolicy nan = NanPolicy::propagate,
                                                         Numerics numerics = Numerics::fast) {
  static_assert(info(kOp).inputs == 1 && info(kOp).outputs == 1, "use tuned_reduce(): there is more than one array");
  using Result = reduce_result_t<ReduceTag<kOp>, T>;
  Result result{};
  tuned_reduce_and_wait(session, detail::spec_of<kOp, T, Result>(nan, numerics), in, n, &result, stream);
  return result;
}

}  // namespace hone
