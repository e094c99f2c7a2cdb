// Parts of all segmented reductions: the arrays of a call, staging of elements in shared memory, and the loop of a
// group of threads over contiguous elements.
#pragma once

#include "pack.cuh"
#include "reduction.cuh"
#include "segments_arguments.h"

namespace hone {

inline constexpr unsigned kPackBytes = 16;

/// The arrays of a call, in CSR form: segment s is in[offsets[s] … offsets[s + 1]). It has kOutputs contiguous results.
template <class Op, class Offset, class Out, unsigned kOutputs>
struct Segments {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;

  const In* in;
  Index elements;
  const Offset* offsets;
  Index count;
  Out* out;

  explicit __device__ Segments(const SegmentsArguments& arguments)
      : in(static_cast<const In*>(arguments.in)),
        elements(static_cast<Index>(arguments.elements)),
        offsets(static_cast<const Offset*>(arguments.offsets)),
        count(static_cast<Index>(arguments.segments)),
        out(static_cast<Out*>(arguments.out)) {}

  __device__ Index offset(Index i) const { return static_cast<Index>(offsets[i]); }

  /// Writes the results of a segment of n elements.
  __device__ void write(Index segment, Index n, State state) const { Op::write(state, n, out + segment * kOutputs); }
};

/// Stages contiguous elements in shared memory. All threads of a block load kPacks packs each. Elements keep their
/// offset from a 16-byte boundary, so that packs are stored as they were loaded.
template <class In, unsigned kBlockThreads, unsigned kPacks>
struct ElementTile {
  static constexpr unsigned kPackElements = kPackBytes / sizeof(In);

  /// At any alignment, so many elements span no more packs than the threads load.
  static constexpr unsigned kMaxElements = (kBlockThreads * kPacks - 1) * kPackElements;
  static constexpr unsigned kBytes = kBlockThreads * kPacks * kPackBytes;

  using ElementPack = Pack<In, kPackElements>;

  ElementPack packs[kPacks];

  /// Elements between the preceding 16-byte boundary and `first`.
  static __device__ unsigned shift(const In* first) {
    return static_cast<unsigned>(reinterpret_cast<unsigned long long>(first) % kPackBytes) / unsigned(sizeof(In));
  }

  /// Loads [first, first + count) of the array [begin, end); reads nothing outside of the array.
  __device__ void load(const In* first, unsigned count, const In* begin, const In* end) {
    const unsigned before = shift(first);
    const unsigned all = (before + count + kPackElements - 1) / kPackElements;
    const In* const aligned = first - before;
    if (aligned >= begin && aligned + all * kPackElements <= end) {
      const auto* const from = reinterpret_cast<const ElementPack*>(aligned) + threadIdx.x;
#pragma unroll
      for (unsigned u = 0; u < kPacks; ++u)
        if (threadIdx.x + u * kBlockThreads < all) packs[u] = from[u * kBlockThreads];
      return;
    }
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {  // an end of the array, which may cut a pack
      for (unsigned e = 0; e < kPackElements; ++e) {
        const unsigned i = (threadIdx.x + u * kBlockThreads) * kPackElements + e - before;  // wraps below `before`
        if (i < count) packs[u].set(e, first[i]);
      }
    }
  }

  /// Stores the loaded packs in kBytes of shared memory: element first[i] is at index shift(first) + i.
  __device__ void store(const In* first, unsigned count, unsigned char* shared) const {
    const unsigned all = (shift(first) + count + kPackElements - 1) / kPackElements;
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const unsigned p = threadIdx.x + u * kBlockThreads;
      if (p < all) reinterpret_cast<ElementPack*>(shared)[p] = packs[u];
    }
  }
};

/// Accumulates the share of thread `rank` of a group of kThreads in the elements [first, last) of the segment that
/// starts at `begin`: vectorized loads of 16 bytes, kPacks in flight, and single elements at both ends.
template <class Op, unsigned kThreads, unsigned kPacks, class Arrays>
__device__ typename Op::State stream(const Arrays& arrays, unsigned rank, typename Op::Index first,
                                     typename Op::Index last, typename Op::Index begin, typename Op::State state) {
  using In = typename Op::In;
  using Index = typename Op::Index;
  constexpr unsigned kPackElements = kPackBytes / sizeof(In);
  static_assert(kThreads >= 2 * kPackElements, "the ends are handled by one thread per element");
  using ElementPack = Pack<In, kPackElements>;

  const In* const from = arrays.in + first;
  const Index n = last - first;
  const Index unaligned = elements_before_alignment<kPackBytes>(from);
  const Index head = unaligned < n ? unaligned : n;
  const Index packs = (n - head) / kPackElements;
  const auto* const body = reinterpret_cast<const ElementPack*>(from + head);
  const Index index = first - begin + head;

  Index p = rank;
  for (; p + (kPacks - 1) * kThreads < packs; p += kPacks * kThreads) {
    ElementPack tile[kPacks];
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) tile[u] = body[p + u * kThreads];
    Op::accumulate(state, tile, index + p * kPackElements, Index(kThreads * kPackElements));
  }
  ElementPack tile[kPacks][1];  // the tail
#pragma unroll
  for (unsigned u = 0; u < kPacks; ++u)
    if (p + u * kThreads < packs) tile[u][0] = body[p + u * kThreads];
#pragma unroll
  for (unsigned u = 0; u < kPacks; ++u)
    if (p + u * kThreads < packs) Op::accumulate(state, tile[u], index + (p + u * kThreads) * kPackElements, Index(0));

  const Index i = rank < head ? rank : head + packs * kPackElements + (rank - head);
  if (i < n) state = Op::combine(state, Op::of(from[i], first - begin + i));
  return state;
}

}  // namespace hone
