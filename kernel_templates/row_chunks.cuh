// Long rows that many blocks share, in chunks that are read twice: to publish a State of each, and, when those of its
// row are known, to write it. These are two launches; row_pipeline.cuh does the same in one.
//
// Kernel has kBlockThreads, Arguments, Rows, Row, State, and
//
//   combine(rows)                            the Combine of a block's threads
//   chunk_state<kTile>(chunk, rows, combine) the State of a chunk, in all threads; kTile loads in flight
//   row_state(states, parts, rows, combine)  that of a row, from those of its chunks
//   write_chunk<kTile>(chunk, state, rows)   reads the chunk again and writes it
//
// Rows has row<kThreads>(r, thread), a thread's share of a Row, and Row has chunk(part, parts). Constraints: the
// product of rows and parts fits 32 bits.
#pragma once

#include "grid.cuh"

namespace hone {

template <class Kernel, unsigned kTile>
struct RowChunks {
  using Arguments = typename Kernel::Arguments;
  using State = typename Kernel::State;
  using Row = typename Kernel::Row;

  /// Calls act(item, chunk) for all chunks of all rows, one after the other, or in reverse order.
  template <bool kReversed>
  static __device__ void for_chunks(const typename Kernel::Rows& all, unsigned parts, const auto& act) {
    const auto items = static_cast<unsigned>(all.rows) * parts;
    for (unsigned i = blockIdx.x; i < items; i += gridDim.x) {
      const unsigned item = kReversed ? items - 1 - i : i;
      act(item, all.template row<Kernel::kBlockThreads>(item / parts, threadIdx.x).chunk(item % parts, parts));
    }
  }

  static __device__ void publish(const Arguments& arguments) {
    const typename Kernel::Rows all{arguments};
    auto combine = Kernel::combine(all);
    for_chunks<false>(all, arguments.chunks, [&](unsigned item, const Row& chunk) {
      const State state = Kernel::template chunk_state<kTile>(chunk, all, combine);
      if (threadIdx.x == 0) partials_in<State>(arguments.workspace)[item] = state;
    });
  }

  /// The chunks that were read last may still be in cache, so they come first.
  static __device__ void write(const Arguments& arguments) {
    const typename Kernel::Rows all{arguments};
    const unsigned parts = arguments.chunks;
    auto combine = Kernel::combine(all);
    for_chunks<true>(all, parts, [&](unsigned item, const Row& chunk) {
      const State* const of_row = partials_in<State>(arguments.workspace) + item / parts * parts;
      Kernel::template write_chunk<kTile>(chunk, Kernel::row_state(of_row, parts, all, combine), all);
    });
  }
};

}  // namespace hone
