// Long rows that the blocks of a grid hold together in shared memory, so that each is read once, or as much of it as
// they hold, by a Kernel as in row_chunks.cuh that has as many threads as a group here.
//
// All blocks are resident, one an SM (a cooperative launch). Each has the same part of every row, in chunks of which a
// ring in dynamic shared memory holds several: those of the row that is being written, and as many of the next rows as
// there is room for. So loads are in flight while blocks wait for each other. The warps of a block have roles:
//
//   loads      threads of two warps start bulk copies into chunks of the ring that are free
//   sums       a group of warps adds up chunks that have landed; each warp has a State of the block's part
//   publishes  a warp publishes the State of the part, or those of its runs of chunks
//   combines   a warp waits for the States of all blocks and combines them; or several warps, which take turns, or
//              share rows that have many States
//   writes     another group writes the row from shared memory, and so frees its chunks
//
// Where a part is longer than the ring, some of its chunks pass through slots of their own. They are freed when they
// are added up, and copied again to be written, the last first, from L2 as far as it has them. Copies ask L2 to evict
// first what is read for the last time, and to keep what is not. There is one group of each kind then.
// HeldRoles::kPassFirst says which pass:
//
//   the first ones   A group adds up those of row r + 1 while blocks wait for each other's States of row r, and the
//                    others while row r is written: first what is held, and then what passes, when all chunks of row
//                    r + 1 that pass have, of which an mbarrier knows. So the two groups use these slots in turn, and
//                    know that what was copied to a slot before has landed. (HeldPair)
//   the last ones    The last of them, one in each slot, stay there. Once the row's State is known, they are written,
//                    then what is copied again, and then what is held. A group writes row r before any chunk of row
//                    r + 1 takes a slot that it held, so a sum never waits for a chunk that is to pass while an
//                    earlier one has yet to land in its slot. (HeldTurns)
//
// kTurns groups of each of these two kinds take rows in turn, so that what a group does once a row (waiting for it,
// folding a warp) takes no time from the others. The ring has room for as many parts. A group does not wait for the
// rows of others, so it might take the phase of an mbarrier that belongs to row r − kMostRows for that of row r. To
// write row r it waits for a chunk of it first: that lands only when row r − kMostRows is written, and so combined.
//
// A block has up to kMostRows rows in its ring, so it publishes row r when it has written row r − kMostRows, for which
// all blocks have published that row, and so have written row r − 2·kMostRows. Hence States of kRing rows are enough,
// and the mbarriers of a row serve again kMostRows later.
//
// The warp that publishes waits for no other row: the State of the next one would be late. A State is published with a
// tag, the row, so that neither side needs a fence, which would wait for the stores of results that are in flight. So
// would a store: others find it 3 µs later where many results are on their way, and what is raised in bulk in 1 µs.
// Two neighbouring parts may share a State: then the second one waits for what the first has of it.
//
// All warps but those that load clear the tags of earlier launches first. Word 1 of the workspace header counts the
// blocks that have, and nobody looks for a tag before all have. Word 0 is the ticket of the last block that has seen
// that, which sets word 1 back.
//
// Some rows have to be summed again when their State is known. Blocks note which they are (all find the same), leave
// them unwritten, and read them again from memory behind all others, when no warp has a role any more: code for them
// within the roles would take their registers, and a call would take more.
//
// Kernel has kBlockThreads, Arguments, Index, Rows, Row, State; Op, a monoid of States with in_all_lanes(); Results,
// which map elements to results; InPack, of 16 bytes; Order, as AnyOrder is one; and
//
//   op(rows)                                  the Op
//   sums_of_part(part, r, rows)               what a thread adds up of row r: at first what is in no whole pack
//   sums_of_chunks(part, first, rows)         the same of the first row for chunks from that pack of the part on:
//                                             nothing yet (if HeldRoles::kPassFirst)
//   add_held<kTile>(sums, chunk, rows)        packs of a chunk
//   state_of(sums, rows)                      the Share of a thread
//   results_of(state, rows)                   those of a row; if Order::kKeepsShares, (state, share, rows), where share
//                                             is that of the block's part
//   write_held<kTile>(chunk, results)
//
// and, if Order::kMaySumAgain, sums_again(state, rows), which is true if a row's State asks for it, and
//
//   sums_of_part(part, r, rows, state)        the same for such a row, of which State is known; first with State(), to
//   add_held<kTile>(sums, chunk, rows, state) know it
//   results_again_of(state, rows)
//
// Rows has row<kThreads>(r, thread), a thread's share of a Row, and Row has end, the packs of the row; singles; the
// address(pack); load(pack); packs_behind_line<kLinePacks>(); load_single(), which a thread that waits for the row's
// State calls before, and write_singles(results, single).
//
// Constraints: the ring has room for kTurns parts, or kTurns is 1 and it has a slot for a chunk, as many as it holds of
// a part, and others for those that pass; `lag` is at most as many as either. If kTurns is more, and a slot belongs to
// different groups in turn, so few copies are in flight that a chunk has landed in its slot before a group may wait for
// the next one there, in whatever order copies land (HeldRows::most_in_flight). Parts and slots are whole lines; the
// packs of a part fit 28 bits.
#pragma once

#include "held_pair.cuh"
#include "held_turns.cuh"

namespace hone {

template <class Kernel, class Roles, unsigned kTile>
using HeldGroups =
    typename Select<Roles::kPassFirst, HeldPair<Kernel, Roles, kTile>, HeldTurns<Kernel, Roles, kTile>>::type;

template <class Kernel, class Roles, unsigned kTile>
struct RowHeld : HeldGroups<Kernel, Roles, kTile> {
  using Parts = HeldGroups<Kernel, Roles, kTile>;
  using typename Parts::Shared, typename Parts::State;
  using Parts::all, Parts::arguments, Parts::kMostRows, Parts::rows, Parts::shared;
  using Parts::kRing, Parts::row_state, Parts::states;
  using Order = typename Kernel::Order;

  __device__ void publish_rows(unsigned lane) const {
    sleep_until_phase(&shared.cleared, 0);
    if (lane == 0) count_up(started_blocks());
    __syncwarp();
    if (this->share_runs()) sleep_until_phase(&shared.started, 0);  // it looks for tags of the part before
#pragma unroll 1
    for (unsigned r = 0; r < rows; ++r) {
      const unsigned place = r % kMostRows, warps = this->wait_for_sums(r);
      this->publish(states(r % kRing), place, r, lane, warps);
      __syncwarp();
      if (lane == 0) arrive(shared.combined + place);  // the warps may write their next shares
    }
  }

  __device__ void combine_rows(unsigned warp, unsigned lane) const {
    if (warp == 0 && lane == 0) {
      wait_for_count(started_blocks(), gridDim.x);
      arrive(&shared.started);
      if (take_last_ticket(static_cast<unsigned*>(arguments.workspace), gridDim.x)) *started_blocks() = 0;
    }
    __syncwarp();
    sleep_until_phase(&shared.started, 0);
    const bool together = this->combine_together();
#pragma unroll 1
    for (unsigned r = together ? 0 : warp; r < rows; r += together ? 1 : Roles::kCombiningWarps) {
      this->wait_for_group(r);  // before that nobody needs it
      const State of_row = state_of(r, warp, lane, together);
      if (lane == 0 && (warp == 0 || !together)) {
        shared.of_row[r % kMostRows] = of_row;
        arrive(shared.combined + r % kMostRows);
      }
    }
  }

  static __device__ void run(const typename Kernel::Arguments& arguments) {
    __shared__ Shared shared;
    const RowHeld held{{{{{{arguments, shared}}}}}};
    held.init_shared();
    pdl_release_then_wait();
    __syncthreads();
    const unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
    if (warp >= Roles::kLoadingWarps) held.clear_states();
    if (warp < Roles::kLoadingWarps) {
      if (lane == 0) held.load_rows(warp);
    } else if (warp == Roles::kLoadingWarps) {
      held.publish_rows(lane);
    } else if (warp < Roles::kFirstSum) {
      held.combine_rows(warp - Roles::kLoadingWarps - 1, lane);
    } else {
      const bool is_sum = warp < Roles::kFirstWrite;
      const unsigned of_kind = warp - (is_sum ? Roles::kFirstSum : Roles::kFirstWrite);
      const unsigned thread = of_kind % Roles::kGroupWarps * kWarpThreads + lane;
      held.take_rows(is_sum, of_kind / Roles::kGroupWarps, thread);
    }
    if constexpr (Order::kMaySumAgain) {
      __syncthreads();
      held.write_rows_again();
    }
  }

 private:
  __device__ State state_of(unsigned r, unsigned warp, unsigned lane, bool together) const {
    if constexpr (Order::kHasNodes) {
      if (together) return this->row_state_together(states(r % kRing), r, warp, lane);
    }
    return row_state(states(r % kRing), r, lane);
  }

  __device__ unsigned* started_blocks() const { return static_cast<unsigned*>(arguments.workspace) + 1; }
};

}  // namespace hone
