// canonical_reduce(): reductions in host memory with the bits that Numerics::reproducible promises, for tests.
#pragma once

#include <cstdint>
#include <span>

#include <hone/reduce_spec.h>

namespace hone {

/// An array in host memory, with `stride` elements from one element to the next: 1 for an array or a row, the leading
/// dimension for a column.
struct HostArray {
  const void* first = nullptr;
  std::int64_t stride = 1;
};

/// Reduces n elements of spec.dtype, and writes info(spec.op).outputs values of spec.result_dtype() to *out: the bits
/// of every reproducible kernel for an array, a row, a column or a segment of these elements. It is the definition in
/// docs/numerics.md, written down plainly, in one thread. spec.numerics does not matter. `b` is the other array of a
/// dot.
///
/// Throws Error: invalid_argument for a negative n, a missing array, and dtypes that do not go together; unsupported
/// for reductions whose result does not depend on an order (reduce_depends_on_order()): any loop gives their bits.
void canonical_reduce(const ReduceSpec& spec, const HostArray& a, const HostArray& b, std::int64_t n, void* out);

/// The same of one array: float s = canonical_reduce(hone::sum, std::span<const float>(values)).
template <ReduceOp kOp, class T>
element_t<reduce_result_dtype(kOp, kDTypeOf<T>)> canonical_reduce(ReduceTag<kOp>, std::span<const T> in,
                                                                  NanPolicy nan = NanPolicy::propagate) {
  static_assert(info(kOp).inputs == 1 && info(kOp).outputs == 1, "there is more than one array: pass a ReduceSpec");
  static_assert(reduce_supports(kOp, kDTypeOf<T>), "this reduction is not defined for this element type");
  element_t<reduce_result_dtype(kOp, kDTypeOf<T>)> result{};
  canonical_reduce({.op = kOp, .dtype = kDTypeOf<T>, .nan = nan}, {in.data()}, {},
                   static_cast<std::int64_t>(in.size()), &result);
  return result;
}

}  // namespace hone
