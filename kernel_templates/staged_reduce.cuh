// Reduces the middle extent of slices × reduced × inner if a slice is small: a few elements to a few thousand.
//
// Slices are contiguous, so a block copies as many as fit its tile into shared memory (StagedRun), at any alignment;
// its threads then read the elements of each output from there. kBlockThreads × kUnroll packs per block are in flight.
//
// kLanes neighbouring threads share an output; with inner = 1 (kIsFlat) the outputs are the rows of a matrix. Threads
// with a row each have few bank conflicts where rows are no multiple of 16 bytes, since they begin in different banks.
// Rows of up to kMostUnrolled elements have code for each number of elements, and are read word by word (WholeWords).
//
// Constraints: a tile's slices have at most kTileElements elements; kBlockThreads is at least two packs' elements.
#pragma once

#include "axis_arguments.h"
#include "grid.cuh"
#include "staged_run.cuh"
#include "whole_words.cuh"

namespace hone {

template <class Op, unsigned kBlockThreads, unsigned kLanes, unsigned kUnroll, bool kIsFlat, class Out,
          unsigned kValues>
struct StagedReduce {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Run = StagedRun<In, kBlockThreads, kUnroll>;
  static constexpr unsigned kTileElements = Run::kMaxElements;
  static constexpr unsigned kGroups = kBlockThreads / kLanes;
  static constexpr unsigned kMostUnrolled = 12;
  static_assert(kLanes <= kWarpThreads && (kLanes & (kLanes - 1)) == 0 && kBlockThreads % kWarpThreads == 0);

  static __device__ void reduce(const StagedArguments& all) {
    __shared__ typename Run::ElementPack tile[kBlockThreads * kUnroll + 1];
    pdl_release_then_wait();
    const unsigned inner = kIsFlat ? 1 : all.inner;
    const unsigned slice_elements = all.reduced * inner;
    const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * all.slices_per_tile;
    unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * all.slices_per_tile;
    for (; first < all.slices; first += stride) {
      const unsigned count = at_most(all.slices - first, all.slices_per_tile);
      const In* const elements =
          Run::copy(tile, static_cast<const In*>(all.in) + first * slice_elements, count * slice_elements);
      wait_for_copies();
      __syncthreads();
      Out* const out = static_cast<Out*>(all.out) + first * inner * kValues;
      if (!reduced_short_rows(elements, count, all.reduced, out))
        reduce_tile(elements, count, all.reduced, inner, out);
      __syncthreads();
    }
  }

 private:
  /// Reduces rows of kColumns elements or more, unless there is no code for their number. Recursive.
  template <unsigned kColumns = 1>
  static __device__ bool reduced_short_rows(const In* elements, unsigned rows, unsigned columns, Out* out) {
    if constexpr (kIsFlat && kLanes == 1 && kColumns <= kMostUnrolled) {
      if (columns != kColumns) return reduced_short_rows<kColumns + 1>(elements, rows, columns, out);
      if (rows < WholeWords<In, kColumns>::kRows) return false;
      reduce_short_rows<kColumns>(elements, rows, out);
      return true;
    }
    return false;
  }

  /// A thread reduces as many rows at once as fill whole words. The last thread's begin early enough to exist, and it
  /// writes only those that are its own.
  template <unsigned kColumns>
  static __device__ void reduce_short_rows(const In* elements, unsigned rows, Out* out) {
    using Rows = WholeWords<In, kColumns>;
    constexpr unsigned kRows = Rows::kRows;
    for (unsigned own = threadIdx.x * kRows; own < rows; own += kBlockThreads * kRows) {
      const unsigned first = own + kRows <= rows ? own : rows - kRows;
      const Rows words(elements + first * kColumns);
      unrolled<kRows>([&](unsigned r) {
        State state = Op::identity();
        accumulate_output(state, [&](unsigned number) { return words[r * kColumns + number]; }, kColumns);
        if (first + r >= own) Op::write(state, static_cast<Index>(kColumns), out + (first + r) * kValues);
      });
    }
  }

  static __device__ void reduce_tile(const In* elements, unsigned slices, unsigned reduced, unsigned inner, Out* out) {
    const unsigned lane = threadIdx.x % kLanes;
    const unsigned outputs = slices * inner;
    for (unsigned begin = 0; begin < outputs; begin += kGroups) {  // uniform for all threads
      const unsigned output = begin + threadIdx.x / kLanes;
      State state = Op::identity();
      if (output < outputs) {
        const unsigned slice = output / inner;
        const In* const first = elements + slice * reduced * inner + (output - slice * inner);
        accumulate_output(state, [&](unsigned number) { return first[number * inner]; }, reduced);
      }
      state = lanes_reduce<Op, kLanes>(state);
      if (lane == 0 && output < outputs)
        Op::write(state, static_cast<Index>(reduced), out + static_cast<unsigned long long>(output) * kValues);
    }
  }

  /// Accumulates every kLanes-th of `reduced` elements.
  static __device__ void accumulate_output(State& state, const auto& element, unsigned reduced) {
    constexpr bool kPads = Op::kComputeBound && Op::kHasNeutral;
    const auto accumulate_rest = [&](unsigned i) {
      if constexpr (kPads) {  // a single padded call costs less than several calls
        const auto element_or_neutral = [&](unsigned n) { return n < reduced ? element(n) : Op::neutral(); };
        if (i + 4 * kLanes < reduced) accumulate<8>(state, element_or_neutral, i);
        else if (i + 2 * kLanes < reduced) accumulate<4>(state, element_or_neutral, i);
        else if (i < reduced) accumulate<2>(state, element_or_neutral, i);
      } else {
        if (i + 3 * kLanes < reduced) { accumulate<4>(state, element, i); i += 4 * kLanes; }
        if (i + kLanes < reduced) { accumulate<2>(state, element, i); i += 2 * kLanes; }
        if (i < reduced) accumulate<1>(state, element, i);
      }
    };
    unsigned i = threadIdx.x % kLanes;
    // If the rest is all there is, the call is code of its own, which the compiler can simplify for the initial State.
    if (kPads && reduced <= 8 * kLanes) return accumulate_rest(i);
    for (; i + 7 * kLanes < reduced; i += 8 * kLanes) accumulate<8>(state, element, i);
    accumulate_rest(i);
  }

  /// Accumulates kCount elements: i, i + kLanes, …
  template <unsigned kCount>
  static __device__ void accumulate(State& state, const auto& element, unsigned i) {
    constexpr unsigned kElements = kLanes == 1 ? kCount : 1;  // contiguous: a pack
    Pack<In, kElements> some[kCount / kElements];
    unrolled<kCount>([&](unsigned u) { some[u / kElements].set(u % kElements, element(i + u * kLanes)); });
    Op::accumulate(state, some, static_cast<Index>(i), static_cast<Index>(kLanes));
  }
};

}  // namespace hone
