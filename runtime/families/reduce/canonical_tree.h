// The canonical tree of a sequence of elements, as docs/numerics.md defines it: chunks, and what combines them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <hone/reduce_spec.h>

namespace hone::canonical {

/// The elements of a chunk: 2 KiB of them.
constexpr std::int64_t chunk_elements(DType dtype) {
  return static_cast<std::int64_t>(2048 / info(dtype).size_bytes);
}

/// Folds a chunk in halves: v[r] ← v[r] ⊕ v[r + s] for s = C ÷ 2, …, 1. A shorter one is filled up with `absent`, as
/// far as makes a difference.
template <class A, class Combine>
A fold_in_halves(std::vector<A> v, A absent, const Combine& combine) {
  v.resize(std::bit_ceil(std::max<std::size_t>(v.size(), 1)), absent);
  for (std::size_t s = v.size() / 2; s > 0; s /= 2)
    for (std::size_t r = 0; r < s; ++r) v[r] = combine(v[r], v[r + s]);
  return v[0];
}

/// The binary tree of the numbers of `count` chunks, at least one, from `first` on: the left side has as many as the
/// largest power of two below `count`.
template <class OfChunk, class Combine>
auto join_chunks(std::int64_t first, std::int64_t count, const OfChunk& of_chunk, const Combine& combine) {
  if (count == 1) return of_chunk(first);
  const auto left = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)) / 2);
  const auto before = join_chunks(first, left, of_chunk, combine);
  return combine(before, join_chunks(first + left, count - left, of_chunk, combine));
}

/// Elements in host memory: those of an array, `stride` elements apart, or of a pattern of `period` elements that is
/// repeated.
struct Sequence {
  const std::byte* bytes = nullptr;
  std::int64_t stride = 1;
  std::int64_t period = 0;  ///< 0: it is not repeated
  std::int64_t first = 0;   ///< where in the pattern it begins
};

/// Writes a result, float or double, rounded once to the floating `dtype`; a NaN as the one that results are.
template <class A>
void store(DType dtype, A value, std::byte* out);

/// Nodes of the canonical tree of an endless sequence: nodes(first, count) is the combination of `count` chunks from
/// chunk `first` on, as the kernels hold it (Op::State): a count of 8 bytes, if the operation has one, and
/// accumulators. The arguments must outlive it.
using Nodes = std::function<std::vector<std::byte>(std::int64_t first, std::int64_t count)>;
Nodes nodes_of(const ReduceSpec& spec, const Sequence& a, const Sequence& b, std::int64_t elements_of_chunk);

/// canonical_reduce() of sequences; `b` is used by dot. Writes the results to *out.
void reduce(const ReduceSpec& spec, const Sequence& a, const Sequence& b, std::int64_t n, std::byte* out);

}  // namespace hone::canonical
