// Softmax, or its logarithm, of each row of a matrix.
//
// The threads of a row:
//
//   groups    kGroup neighbouring lanes (1 … 32), kRows rows at once; the row is held in registers
//   block     all threads of a block; the row is held in registers or shared memory
//   cluster   all threads of a cluster of blocks, which exchange partials through DSMEM
//   chunks    many blocks, in two launches: the first publishes maximum and sum of each chunk of a row; the second
//             combines those of the row, reads its chunk again and writes it
//
// The part of a row that exceeds what its threads can hold is read twice. A grid-stride loop over rows. May be in
// place. The order of additions depends only on the shape, the grid and the pointers' alignment.
//
// Constraints: kBlockThreads is a power of two, at least a warp; kGroup a power of two, at most a warp.
#pragma once

#include "grid.cuh"
#include "kernel.cuh"
#include "softmax_shares.cuh"

namespace hone {

/// Combines the States of all threads of a block; all get the result. Double buffering with one barrier: called with
/// `buffer` 0, 1, 0, …, so that partials in one buffer may be read while those in the other are written.
template <unsigned kBlockThreads, class Acc>
__device__ SoftmaxState<Acc> combine_block(SoftmaxState<Acc> mine, Acc magnitude, unsigned buffer) {
  constexpr unsigned kWarps = kBlockThreads / 32;
  __shared__ SoftmaxState<Acc> of_warp[2][kWarps];
  const unsigned lane = threadIdx.x % 32;
  mine = combine_lanes<32>(mine, magnitude);
  if (lane == 0) of_warp[buffer][threadIdx.x / 32] = mine;
  __syncthreads();
  return combine_lanes<kWarps>(of_warp[buffer][lane % kWarps], magnitude);
}

template <class Types, unsigned kBlockThreads>
struct Softmax {
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using State = typename Types::State;
  using Rows = SoftmaxRows<Types>;
  using Arguments = typename Rows::Arguments;
  using Ends = Singles<Types, kBlockThreads>;
  static_assert(kBlockThreads % 32 == 0 && (kBlockThreads & (kBlockThreads - 1)) == 0);

  /// kPacks: packs of a row in a thread's registers.
  template <unsigned kGroup, unsigned kPacks, unsigned kRows>
  static __device__ void groups(const Arguments& arguments) {
    const Rows all(arguments);
    constexpr unsigned kGroups = kBlockThreads / kGroup;
    pdl_release_then_wait();
    const unsigned thread = threadIdx.x % kGroup;
    const Index stride = static_cast<Index>(gridDim.x) * (kGroups * kRows);
    for (Index first = static_cast<Index>(blockIdx.x) * (kGroups * kRows); first < all.rows; first += stride) {
      const Index mine = first + threadIdx.x / kGroup;
      RegisterShare<Types, kGroup, kPacks> shares[kRows];
      State states[kRows];
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) shares[r].load(all.row(mine + r * kGroups), thread, all.scale);
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) states[r] = shares[r].state(all.row(mine + r * kGroups), thread, all.scale);
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) states[r] = combine_lanes<kGroup>(states[r], all.scale.magnitude());
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) shares[r].write(all.row(mine + r * kGroups), thread, states[r], all.scale);
    }
  }

  template <class Share>
  static __device__ void block(const Rows& all, Share share) {
    pdl_release_then_wait();
    unsigned buffer = 0;
    for (Index r = blockIdx.x; r < all.rows; r += gridDim.x, buffer ^= 1) {
      const Row<Types> row = all.row(r);
      share.load(row, threadIdx.x, all.scale);
      const State state =
          combine_block<kBlockThreads>(share.state(row, threadIdx.x, all.scale), all.scale.magnitude(), buffer);
      share.write(row, threadIdx.x, state, all.scale);
    }
  }

  template <unsigned kPacks>
  static __device__ void block_in_registers(const Arguments& arguments) {
    block(Rows(arguments), RegisterShare<Types, kBlockThreads, kPacks>());
  }
  static __device__ void block_in_shared(const Arguments& arguments) {
    block(Rows(arguments), SharedShare<Types, kBlockThreads, kBlockThreads>(arguments.packs_per_thread));
  }

  /// Chunk `part` of the `parts` chunks of a row: the packs [first, end).
  struct Chunk {
    Index first, end;

    __device__ Chunk(const Row<Types>& row, unsigned part, unsigned parts) {
      const Index each = (row.packs + parts - 1) / parts;
      first = static_cast<Index>(part) * each;
      end = first + each < row.packs ? first + each : row.packs;
    }
  };

  /// The single elements of a row belong to its first chunk.
  template <unsigned kTile>
  static __device__ void publish_chunks(const Arguments& arguments) {
    const Rows all(arguments);
    const unsigned parts = arguments.chunks;
    pdl_release_then_wait();
    const auto items = static_cast<unsigned>(all.rows) * parts;
    unsigned buffer = 0;
    for (unsigned item = blockIdx.x; item < items; item += gridDim.x, buffer ^= 1) {
      const Row<Types> row = all.row(item / parts);
      const Chunk chunk(row, item % parts, parts);
      Acc heaviest = all.scale.neutral();
      Acc sum(0);
      if (item % parts == 0) {
        heaviest = Ends::heaviest(row, threadIdx.x, all.scale);
        sum = Ends::sum(row, threadIdx.x, {heaviest, all.scale});
      }
      PackRun<Types, kBlockThreads, kTile>::add(row, chunk.first + threadIdx.x, chunk.end, all.scale, heaviest, sum);
      const State state =
          combine_block<kBlockThreads>(State{all.scale.oriented(heaviest), sum}, all.scale.magnitude(), buffer);
      if (threadIdx.x == 0) partials_in<State>(arguments.workspace)[item] = state;
    }
  }

  /// In reverse order: the chunks that were read last may still be in cache.
  template <unsigned kTile>
  static __device__ void write_chunks(const Arguments& arguments) {
    const Rows all(arguments);
    const unsigned parts = arguments.chunks;
    pdl_release_then_wait();
    const auto items = static_cast<unsigned>(all.rows) * parts;
    unsigned buffer = 0;
    for (unsigned i = blockIdx.x; i < items; i += gridDim.x, buffer ^= 1) {
      const unsigned item = items - 1 - i;
      const Row<Types> row = all.row(item / parts);
      const Chunk chunk(row, item % parts, parts);
      const State* const of_row = partials_in<State>(arguments.workspace) + item / parts * parts;
      State state = State::identity();
      for (unsigned part = threadIdx.x; part < parts; part += kBlockThreads)
        state = combine(state, load_from_l2(of_row + part), all.scale.magnitude());
      state = combine_block<kBlockThreads>(state, all.scale.magnitude(), buffer);
      const typename Types::Result result(state, all.scale);
      PackRun<Types, kBlockThreads, kTile>::write(row, chunk.first + threadIdx.x, chunk.end, result);
      if (item % parts == 0) Ends::write(row, threadIdx.x, result);
    }
  }

#ifndef HONE_HOST_DEVICE
  template <unsigned kClusterBlocks, class Share>
  static __device__ void cluster(const Rows& all, Share share) {
    __shared__ State of_block[2][kClusterBlocks];
    arrive_at_cluster_barrier();
    pdl_release_then_wait();
    const unsigned rank = rank_in_cluster();
    const unsigned thread = rank * kBlockThreads + threadIdx.x;
    wait_at_cluster_barrier();  // every block has started: DSMEM may be accessed
    unsigned buffer = 0;
    for (Index r = blockIdx.x / kClusterBlocks; r < all.rows; r += gridDim.x / kClusterBlocks, buffer ^= 1) {
      const Row<Types> row = all.row(r);
      share.load(row, thread, all.scale);
      State state = combine_block<kBlockThreads>(share.state(row, thread, all.scale), all.scale.magnitude(), buffer);
      if (threadIdx.x < kClusterBlocks) store_in_block(&of_block[buffer][rank], threadIdx.x, state);
      arrive_at_cluster_barrier();
      wait_at_cluster_barrier();
      state = combine_lanes<kClusterBlocks>(of_block[buffer][threadIdx.x % kClusterBlocks], all.scale.magnitude());
      share.write(row, thread, state, all.scale);
    }
  }

  template <unsigned kClusterBlocks, unsigned kPacks>
  static __device__ void cluster_in_registers(const Arguments& arguments) {
    cluster<kClusterBlocks>(Rows(arguments), RegisterShare<Types, kClusterBlocks * kBlockThreads, kPacks>());
  }
  template <unsigned kClusterBlocks>
  static __device__ void cluster_in_shared(const Arguments& arguments) {
    using Share = SharedShare<Types, kClusterBlocks * kBlockThreads, kBlockThreads>;
    cluster<kClusterBlocks>(Rows(arguments), Share(arguments.packs_per_thread));
  }
#endif
};

}  // namespace hone
