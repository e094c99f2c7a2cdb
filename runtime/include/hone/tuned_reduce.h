// tuned_reduce(): reduce an array in device memory to one value.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <hone/dtype.h>
#include <hone/session.h>
#include <hone/stream.h>

namespace hone {

enum class ReduceOp : std::uint8_t { sum, min, max };

inline constexpr std::array<std::string_view, 3> kReduceOpNames{"sum", "min", "max"};
constexpr std::string_view name(ReduceOp op) { return kReduceOpNames[static_cast<std::size_t>(op)]; }

/// The ReduceOp called `name`. Throws Error(not_found) that lists the known names.
ReduceOp parse_reduce_op(std::string_view name);

/// The operations as types, so that the result type is known at compile time.
template <ReduceOp kOp>
struct ReduceTag {
  static constexpr ReduceOp op = kOp;
};
inline constexpr ReduceTag<ReduceOp::sum> sum;
inline constexpr ReduceTag<ReduceOp::min> min;
inline constexpr ReduceTag<ReduceOp::max> max;

/// The dtype of the result: the input's, but a sum of i32 is i64, which cannot overflow below 2^32 elements.
/// NumPy and PyTorch widen likewise.
constexpr DType reduce_result_dtype(ReduceOp op, DType in) {
  return op == ReduceOp::sum && in == DType::i32 ? DType::i64 : in;
}

namespace detail {
template <DType kDType>
struct ElementOf;
template <>
struct ElementOf<DType::f32> { using type = float; };
template <>
struct ElementOf<DType::f64> { using type = double; };
template <>
struct ElementOf<DType::i32> { using type = std::int32_t; };
template <>
struct ElementOf<DType::i64> { using type = std::int64_t; };
}  // namespace detail

template <class Tag, class T>
using reduce_result_t = typename detail::ElementOf<reduce_result_dtype(Tag::op, kDTypeOf<T>)>::type;

/// The built-in family behind tuned_reduce(): extents {n, 1, 1}, buffers {in[n], out[1]}.
const KernelFamily& reduce_family();

/// The Problem that tuned_reduce() asks for an array at `alignment` bytes.
Problem reduce_problem(ReduceOp op, DType dtype, std::int64_t n, std::uint32_t alignment = kMaxAlignment);

/// Writes the reduction of in[0 … n) to *out, both in memory of the session's device, in the order of `stream`.
/// n may be 0 (the identity is written: 0, or the largest or smallest value, ±inf for floats) and beyond 2^32;
/// `in` needs the alignment of its element only. A NaN anywhere makes the result NaN. Sums are bitwise equal from run
/// to run for one winner and one alignment. Neither waits nor allocates on `stream`. Thread-safe.
///
/// Throws Error: invalid_argument for a null or misaligned pointer or a negative n; otherwise as Session::launch.
Choice tuned_reduce(Session& session, ReduceOp op, DType dtype, const void* in, std::int64_t n, void* out,
                    Stream stream);

/// The same with the types checked at compile time: tuned_reduce(session, hone::sum, in, n, out, stream).
template <ReduceOp kOp, class T>
Choice tuned_reduce(Session& session, ReduceTag<kOp>, const T* in, std::int64_t n,
                    reduce_result_t<ReduceTag<kOp>, T>* out, Stream stream) {
  return tuned_reduce(session, kOp, kDTypeOf<T>, in, n, out, stream);
}

/// Reduces, copies the result to `*out_host` in host memory and waits for `stream`.
Choice tuned_reduce_and_wait(Session& session, ReduceOp op, DType dtype, const void* in, std::int64_t n,
                             void* out_host, Stream stream);

/// The same, returning the value: float s = tuned_reduce_and_wait(session, hone::sum, in, n, stream).
template <ReduceOp kOp, class T>
reduce_result_t<ReduceTag<kOp>, T> tuned_reduce_and_wait(Session& session, ReduceTag<kOp>, const T* in, std::int64_t n,
                                                         Stream stream) {
  reduce_result_t<ReduceTag<kOp>, T> result{};
  tuned_reduce_and_wait(session, kOp, kDTypeOf<T>, in, n, &result, stream);
  return result;
}

}  // namespace hone
