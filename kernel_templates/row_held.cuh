// Long rows that the blocks of a grid hold together in shared memory, so that each is read once, or as much of it as
// they hold, by a Kernel as in row_chunks.cuh that has as many threads as a group here.
//
// All blocks are resident, one an SM (a cooperative launch). Each has the same part of every row, in chunks of which a
// ring in dynamic shared memory holds several: those of the row that is being written, and as many of the next rows as
// there is room for. So loads are in flight while blocks wait for each other. The warps of a block have roles:
//
//   loads      one thread starts bulk copies into chunks of the ring that are free
//   sums       a group of warps adds up chunks that have landed; each warp has a State of the block's part
//   publishes  a warp publishes the State of the part
//   combines   four warps, which take turns, wait for the States of all blocks and combine them
//   writes     another group writes the row from shared memory, and so frees its chunks
//
// Where a part is longer than the ring, its last chunks pass through slots of their own. They are copied behind the
// others and freed when they are added up; once the row's State is known they are copied again, the last first, from L2
// as far as it has them, and written before those that are held. Copies ask L2 to evict first what is read for the last
// time. A group writes row r before any chunk of row r + 1 takes a slot that it held, so a sum never waits for a chunk
// that is to pass while an earlier one has yet to land in its slot. There is one group of each kind then.
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
// No warp that publishes waits for others: the State of the next row would be late. A State is published with a tag,
// the row, so that neither side needs a fence, which would wait for the stores of results that are in flight. Word 0 of
// the workspace header is the ticket of the last block, word 1 counts the blocks that have cleared their tags.
//
// Kernel has kBlockThreads, Arguments, Index, Rows, Row, State; Results, which map elements to results; InPack, of 16
// bytes; and
//
//   op(rows)                                  a monoid of States, with in_all_lanes()
//   sums_of_singles(part, rows)               what a thread adds up: the single elements of its part
//   add_held<kTile>(sums, chunk, rows)        packs of a chunk
//   state_of(sums, rows)                      the State of a thread
//   results_of(state, rows)                   those of a row
//   write_held<kTile>(chunk, results)
//
// Rows has row<kThreads>(r, thread), a thread's share of a Row, and Row has end, the packs of the row; singles; the
// address(pack); load(pack); packs_behind_line<kLinePacks>() and write_singles(results).
//
// Constraints: the ring has room for kTurns parts, or kTurns is 1 and it has a slot for a chunk, as many as it holds of
// a part, and others for those that pass, at least `lag`; parts and slots are whole lines; the packs of a part fit 28
// bits.
#pragma once

#include "grid.cuh"
#include "held_copies.cuh"
#include "tagged_state.cuh"

namespace hone {

template <class Kernel, unsigned kThreads, unsigned kTurns, unsigned kTile>
struct RowHeld : HeldCopies<Kernel, kThreads, kTurns> {
  using Parts = HeldCopies<Kernel, kThreads, kTurns>;
  using typename Parts::Chunk, typename Parts::Part, typename Parts::Roles, typename Parts::Shared;
  using typename Parts::Slot, typename Parts::State;
  using Parts::all, Parts::arguments, Parts::kMostRows, Parts::rows, Parts::shared;
  static constexpr unsigned kRing = 2 * kMostRows;
  static constexpr unsigned kStatesAtOnce = 5;  ///< that a lane loads: all of a row, of up to 160 blocks

  __device__ void sum_rows(unsigned turn, unsigned thread) const {
    const unsigned warp = thread / kWarpThreads;
    Slot passing;
    this->for_rows(turn, [&](unsigned r, Slot& slot) {
      const Part part = this->part(r, thread);
      auto sums = Kernel::sums_of_singles(part.row, all);
      this->for_held(slot, part, thread, [&](const Chunk& chunk, unsigned) {
        Kernel::template add_held<kTile>(sums, chunk, all);
      });
      this->for_passing(passing, part, thread, false, [&](const Chunk& chunk) {
        Kernel::template add_held<kTile>(sums, chunk, all);
      });
      passing.skip(arguments.passing_slots, this->passing_chunks());  // which are written
      const State state = Kernel::op(all).template in_all_lanes<kWarpThreads>(Kernel::state_of(sums, all));
      __syncwarp();
      if (thread % kWarpThreads == 0) {
        shared.of_warp[r % kMostRows][warp] = state;
        arrive(shared.summed + r % kMostRows);
      }
    });
  }

  __device__ TaggedState<State>* of_blocks(unsigned r) const {
    return partials_in<TaggedState<State>>(arguments.workspace) + r % kRing * gridDim.x;
  }

  __device__ void publish_rows(unsigned lane) const {
    const auto op = Kernel::op(all);
#pragma unroll 1
    for (unsigned r = 0; r < rows; ++r) {
      const unsigned place = r % kMostRows;
      wait_for_phase(shared.summed + place, r / kMostRows % 2);
      const State of_lane = lane < Roles::kGroupWarps ? shared.of_warp[place][lane].value() : op.identity();
      const State of_block = op.template in_all_lanes<kWarpThreads>(of_lane);
      __syncwarp();
      if (lane != 0) continue;
      of_blocks(r)[blockIdx.x].publish(of_block, r + 1);
      arrive(shared.combined + place);  // the warps may write their next States
    }
  }

  /// The State of row r, from those of all blocks.
  __device__ State row_state(unsigned r, unsigned lane) const {
    const auto op = Kernel::op(all);
    TaggedState<State>* const tagged = of_blocks(r);
    State state = op.identity();
#pragma unroll 1
    for (unsigned first = lane; first < gridDim.x; first += kStatesAtOnce * kWarpThreads) {
      State some[kStatesAtOnce];
      bool is_there[kStatesAtOnce];
      unrolled<kStatesAtOnce>([&](unsigned i) { is_there[i] = first + i * kWarpThreads >= gridDim.x; });
      for (bool is_complete = false; !is_complete;) {
        unrolled<kStatesAtOnce>([&](unsigned i) {
          if (!is_there[i]) is_there[i] = tagged[first + i * kWarpThreads].read(some[i], r + 1);
        });
        is_complete = true;
        unrolled<kStatesAtOnce>([&](unsigned i) { is_complete = is_complete && is_there[i]; });
        if (!is_complete) __nanosleep(40);
      }
      unrolled<kStatesAtOnce>([&](unsigned i) {
        if (first + i * kWarpThreads < gridDim.x) state = op.combine(state, some[i]);
      });
    }
    __syncwarp();
    return op.template in_all_lanes<kWarpThreads>(state);
  }

  __device__ void combine_rows(unsigned warp, unsigned lane) const {
    if (lane == 0) wait_for_count(static_cast<unsigned*>(arguments.workspace) + 1, gridDim.x);
    __syncwarp();
#pragma unroll 1
    for (unsigned r = warp; r < rows; r += Roles::kCombiningWarps) {
      wait_for_phase(shared.summed + r % kMostRows, r / kMostRows % 2);  // before that nobody needs it
      const State of_row = row_state(r, lane);
      if (lane == 0) {
        shared.of_row[r % kMostRows] = of_row;
        arrive(shared.combined + r % kMostRows);
      }
    }
  }

  __device__ void write_rows(unsigned turn, unsigned thread) const {
    Slot passing;
    this->for_rows(turn, [&](unsigned r, Slot& slot) {
      const Part part = this->part(r, thread);
      wait_for_phase(shared.landed + slot.number, slot.phase);
      wait_for_phase(shared.combined + r % kMostRows, r / kMostRows % 2);
      const typename Kernel::Results results = Kernel::results_of(shared.of_row[r % kMostRows], all);
      part.row.write_singles(results);
      passing.skip(arguments.passing_slots, this->passing_chunks());  // which are added up
      this->for_passing(passing, part, thread, true, [&](const Chunk& chunk) {
        Kernel::template write_held<kTile>(chunk, results);
      });
      this->for_held(slot, part, thread, [&](const Chunk& chunk, unsigned of_slot) {
        Kernel::template write_held<kTile>(chunk, results);
        this->free(of_slot, thread);
      });
    });
  }

  static __device__ void run(const typename Kernel::Arguments& arguments) {
    __shared__ Shared shared;
    const RowHeld held{{{arguments, shared}}};
    if (threadIdx.x == 0) held.init_shared();
    pdl_release_then_wait();
    auto* const header = static_cast<unsigned*>(arguments.workspace);
    if (threadIdx.x < kRing) held.of_blocks(threadIdx.x)[blockIdx.x].clear();
    __syncthreads();
    if (threadIdx.x == 0) count_up(header + 1);
    const unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
    if (warp == 0) {
      if (lane == 0) held.load_rows();
    } else if (warp == 1) {
      held.publish_rows(lane);
    } else if (warp < Roles::kFirstSum) {
      held.combine_rows(warp - 2, lane);
    } else if (warp < Roles::kEnd) {
      const bool is_sum = warp < Roles::kFirstWrite;
      const unsigned of_kind = warp - (is_sum ? Roles::kFirstSum : Roles::kFirstWrite);
      const unsigned thread = of_kind % Roles::kGroupWarps * kWarpThreads + lane;
      if (is_sum) held.sum_rows(of_kind / Roles::kGroupWarps, thread);
      else held.write_rows(of_kind / Roles::kGroupWarps, thread);
    }
    __syncthreads();
    if (threadIdx.x == 0 && take_last_ticket(header, gridDim.x)) header[1] = 0;
  }
};

}  // namespace hone
