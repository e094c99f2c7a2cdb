// Reduces n elements to one.
//
// A grid-stride loop over tiles. Each thread issues kUnroll vectorized loads of kVectorBytes before it combines any of
// them, so kBlockThreads × kUnroll × kVectorBytes bytes per block and array are in flight; a compute-bound operation
// loads the next tile meanwhile (double buffering). A tile is combined in a tree before it is added to the accumulator:
// one short chain per thread, hence an accurate one. A pointer of any alignment runs at the full vector width
// (PackRange). The order of combination depends only on n, the grid and the pointer's alignment, with kReadsLines to
// 256 bytes.
//
// Constraints: kBlockThreads, kVectorBytes and kUnroll are powers of two; kBlockThreads is at least a warp and two
// packs' elements, kVectorBytes at least an element, at most 32; Op::Index holds n plus one grid-wide stride.
#pragma once

#include "combine.cuh"
#include "pack_range.cuh"
#include "reduce_arguments.h"

namespace hone {

/// Where results go: one element of its own type behind each of several pointers. Several are those of a Fused.
template <class Out, class... Others>
struct Outputs {
  template <class Op>
  static __device__ void write(typename Op::State state, typename Op::Index n, void* const* out) {
    if constexpr (sizeof...(Others) == 0) {
      Op::write(state, n, static_cast<Out*>(out[0]));
    } else {
      Op::Head::write(state.first.value(), n, static_cast<Out*>(out[0]));
      Outputs<Others...>::template write<typename Op::Rest>(state.rest.value(), n, out + 1);
    }
  }
};

/// Outputs_ are the types of the results: Outputs<float, long long>.
template <class Op, template <class, unsigned> class Arrays, class Outputs_, unsigned kBlockThreads,
          unsigned kVectorBytes, unsigned kUnroll, Tail kTail = Tail::warp>
struct Reduce {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;

  static constexpr unsigned kPackElements = kVectorBytes / sizeof(In);
  static constexpr unsigned kTileBytes = kBlockThreads * kUnroll * kVectorBytes;
  static_assert(kVectorBytes % sizeof(In) == 0 && kVectorBytes <= 32);
  static_assert((kUnroll & (kUnroll - 1)) == 0);
  static_assert(kBlockThreads >= 2 * kPackElements, "the ends of the array are handled by one thread per element");

  using Range = PackRange<Arrays<In, kPackElements>, Index>;

  /// With Grid::none there is a single block, or a single cluster.
  template <Grid kGrid, unsigned kClusterBlocks = 1, bool kReadsLines = false>
  static __device__ void reduce(const ReduceArguments& arguments) {
    // The arguments tell what is to be read, so that is known before the wait for the kernels ahead.
    auto range = Range::of(Range::Source::from(arguments.in), static_cast<Index>(arguments.n));
    settle(range.head);
    settle(range.packs);
    Combine<Op, kBlockThreads, kClusterBlocks, kGrid, false, kTail, Exchange::receipts> combine;
    State state = Op::identity();
    range.template accumulate_share<Op, kBlockThreads, kUnroll, kReadsLines>(state, threadIdx.x, blockIdx.x, gridDim.x);
    if (combine.to_first(state, arguments.workspace, blockIdx.x)) write(state, arguments);
  }

  /// The second kernel, of one block.
  static __device__ void finish(const ReduceArguments& arguments) {
    Combine<Op, kBlockThreads, 1, Grid::none, false, kTail> combine;
    State state = combine_published<Op>(partials_in<State>(arguments.workspace), threadIdx.x, arguments.partials,
                                        kBlockThreads);
    if (combine.to_first(state)) write(state, arguments);
  }

 private:
  static __device__ void write(State state, const ReduceArguments& arguments) {
    Outputs_::template write<Op>(state, static_cast<Index>(arguments.n), arguments.out);
  }
};

}  // namespace hone
