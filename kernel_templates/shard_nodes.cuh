// The part that a shard, a run of elements of a longer sequence, has of the sequence's canonical tree: whole chunks,
// which are combined to the largest nodes inside the shard, and the ends of two chunks that it shares with others.
#pragma once

#include "canonical_tree.cuh"
#include "shard_arguments.h"

namespace hone {

/// Chunks have kElements elements, and are numbered from the beginning of the sequence.
template <unsigned kElements>
struct ShardRange {
  unsigned long long first, end;  ///< whole chunks
  unsigned head_at, head;  ///< the elements ahead of them: their number in their chunk, and how many there are
  unsigned tail;           ///< the elements behind them

  static __device__ ShardRange of(unsigned long long offset, unsigned long long n) {
    ShardRange range;
    range.head_at = static_cast<unsigned>(offset % kElements);
    const unsigned to_next = range.head_at == 0 ? 0 : kElements - range.head_at;
    range.head = n < to_next ? static_cast<unsigned>(n) : to_next;
    range.first = (offset + kElements - 1) / kElements;
    const unsigned long long whole = (n - range.head) / kElements;
    range.end = range.first + whole;
    range.tail = static_cast<unsigned>(n - range.head - whole * kElements);
    return range;
  }
};

/// Calls visit(side, level, number) for the largest nodes of the nodes first … end − 1 of `level`, at most two of each
/// level: 0 for the side where numbers begin, 1 for the other. In their order there are those of side 0, ascending by
/// level, and then those of side 1, descending.
template <class Visit>
__device__ void for_each_node(unsigned long long first, unsigned long long end, unsigned level, const Visit& visit) {
#pragma unroll 1
  for (; first < end; first /= 2, end /= 2, ++level)
#pragma unroll 1
    for (unsigned side = 0; side < 2; ++side) {
      const bool is_odd = ((side == 0 ? first : end) & 1) != 0;
      if (is_odd && first < end) visit(side, level, side == 0 ? first++ : --end);
    }
}

/// The elements of all ranks below `rank`; called by all lanes of a warp.
__device__ inline unsigned long long elements_before(const long long* counts, unsigned rank) {
  unsigned long long sum = 0;
#pragma unroll 8
  for (unsigned r = threadIdx.x % kWarpThreads; r < rank; r += kWarpThreads)
    sum += static_cast<unsigned long long>(counts[r * kCountStride]);
#pragma unroll
  for (unsigned mask = 1; mask < kWarpThreads; mask *= 2) sum += shuffle_xor(sum, mask);
  return sum;
}

/// The tree of a sequence of nodes that are pushed in their order: a binary counter, digit l of which is held by lane
/// l % 32. All lanes of a warp push the same.
template <class Op>
class NodeTree {
 public:
  using State = typename Op::State;

  __device__ void push(State state, unsigned level) {
    const unsigned from = level;
    for (unsigned long long carries = chunks_ >> level; (carries & 1) != 0; carries >>= 1, ++level)
      state = Op::combine(digit(level), state);
    if (threadIdx.x % kWarpThreads == level % kWarpThreads) (level < kWarpThreads ? low_ : high_) = state;
    chunks_ += 1ull << from;
  }

  /// absent() if nothing was pushed.
  __device__ State root() const {
    State state = Op::absent();
    bool has_right = false;
    unsigned level = 0;
    for (unsigned long long digits = chunks_; digits != 0; digits >>= 1, ++level) {
      if ((digits & 1) == 0) continue;
      state = has_right ? Op::combine(digit(level), state) : digit(level);
      has_right = true;
    }
    return state;
  }

 private:
  __device__ State digit(unsigned level) const {
    return shuffle_from(level < kWarpThreads ? low_ : high_, level % kWarpThreads);
  }

  State low_ = Op::absent(), high_ = Op::absent();
  unsigned long long chunks_ = 0;
};

}  // namespace hone
