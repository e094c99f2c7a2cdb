// Long rows in one launch, by a Kernel of row_chunks.cuh: chunks are read twice, the second time from L2.
//
// Each chunk has two work items: publish its State; later combine those of its row, read the chunk again and write it.
// A persistent grid alternates between items of both kinds, `lag` rows apart: far enough that an item rarely waits for
// partials, near enough that its row is still in L2. So DRAM traffic is as if rows were read once.
//
// Blocks claim items in order by a ticket. An item waits only for items with smaller numbers, which running blocks have
// claimed: whichever blocks are resident, the smallest unfinished item can proceed, so there is no deadlock.
//
// Word 0 of the workspace header is the ticket of work items, word 1 that of the last block. Each of kRing slots has a
// counter of finished items, which continues with the row kRing later: 2 · parts items per row. Partials have kRing
// rows, too. Constraints: 1 <= lag < kRing; 2 · rows · parts plus two grids fits 32 bits.
#pragma once

#include "row_chunks.cuh"

namespace hone {

template <class Kernel, unsigned kTile>
struct RowPipeline {
  using State = typename Kernel::State;

  static constexpr unsigned kRing = 16;
  static constexpr unsigned kCounters = 16;  ///< the first word of the header that counts the items of a row
  static_assert((kCounters + kRing) * sizeof(unsigned) <= kWorkspaceHeaderBytes);

  struct Item {
    bool publishes;
    unsigned row, part;

    /// Item `ticket`: the chunks of `lag` rows are published; then chunks are published and written alternately.
    __device__ Item(unsigned ticket, unsigned rows, unsigned parts, unsigned lag) {
      const unsigned items = rows * parts, lead = (lag < rows ? lag : rows) * parts;
      const unsigned behind = ticket - lead;
      publishes = ticket < lead || (behind < 2 * (items - lead) && behind % 2 == 0);
      unsigned chunk = ticket;
      if (ticket >= lead) chunk = behind >= 2 * (items - lead) ? ticket - items : behind / 2 + (publishes ? lead : 0);
      row = chunk / parts;
      part = chunk - row * parts;
    }
  };

  static __device__ void run(const typename Kernel::Arguments& arguments) {
    const typename Kernel::Rows all{arguments};
    const unsigned parts = arguments.chunks;
    __shared__ unsigned tickets[2];
    auto combine = Kernel::combine(all);
    auto* const header = static_cast<unsigned*>(arguments.workspace);
    const auto rows = static_cast<unsigned>(all.rows);
    const unsigned items = 2 * rows * parts;
    if (threadIdx.x == 0) tickets[0] = atomicAdd(header, 1u);
    __syncthreads();
    unsigned buffer = 0;
    for (unsigned ticket = tickets[0]; ticket < items; buffer ^= 1, ticket = tickets[buffer]) {
      const Item item(ticket, rows, parts, arguments.lag);
      const auto chunk =
          all.template row<Kernel::kBlockThreads>(item.row, threadIdx.x).chunk(item.part, parts);
      const unsigned slot = item.row % kRing;
      unsigned* const counter = header + kCounters + slot;
      const unsigned before = item.row / kRing * (2 * parts);  // counted for earlier rows in the slot
      State* const of_row = partials_in<State>(arguments.workspace) + slot * parts;
      unsigned next = 0;
      if (threadIdx.x == 0) next = atomicAdd(header, 1u);  // prefetched: it is needed much later
      if (item.publishes) {
        const State state = Kernel::template chunk_state<kTile>(chunk, all, combine);
        if (threadIdx.x == 0) {
          wait_for_count(counter, before);
          of_row[item.part] = state;
          count_up(counter);
        }
      } else {
        if (threadIdx.x == 0) wait_for_count(counter, before + parts);
        __syncthreads();
        const State state = Kernel::row_state(of_row, parts, all, combine);
        if (threadIdx.x == 0) count_up(counter);  // the item is finished as soon as the partials are read
        Kernel::template write_chunk<kTile>(chunk, state, all);
      }
      if (threadIdx.x == 0) tickets[buffer ^ 1] = next;
      __syncthreads();
    }
    if (threadIdx.x == 0 && take_last_ticket(header + 1, gridDim.x)) {
      header[0] = 0;
#pragma unroll 1
      for (unsigned i = 0; i < kRing; ++i) header[kCounters + i] = 0;
    }
  }
};

}  // namespace hone
