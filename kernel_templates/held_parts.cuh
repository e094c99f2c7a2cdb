// HeldParts: the parts of rows that a block of row_held.cuh holds, in chunks in a ring of dynamic shared memory.
//
// Chunk after chunk of row after row takes the next slot of the ring, which has `slots` slots of `slot_packs` packs. A
// part has `chunks` chunks, the same number in each row; those behind the end of a row are empty. If the ring has room
// for `held_chunks` of them only, the others pass through a ring of `passing_slots` slots behind it: once to be added
// up, and again, the last one first, to be written.
#pragma once

#include "bulk_copy.cuh"
#include "dynamic_smem.cuh"
#include "held_roles.cuh"
#include "row_chunks.cuh"
#include "tagged_state.cuh"

namespace hone {

template <class Kernel, class Roles_>
struct HeldParts {
  using Roles = Roles_;
  using State = typename Kernel::State;
  using Row = typename Kernel::Row;
  using Rows = typename Kernel::Rows;
  using Index = typename Kernel::Index;
  using InPack = typename Kernel::InPack;

  static constexpr unsigned kMostRows = 14, kMostSlots = 64, kLinePacks = 8;
  static constexpr unsigned kMostStaged = 16;
  static constexpr unsigned kMostNodes = kWarpThreads;  ///< of a row's States, if warps combine them together
  /// Rows of a call, at most, of which some may have to be summed again.
  static constexpr unsigned kMostAgain = Kernel::Order::kMaySumAgain ? 16384 : 32;
  static_assert(Kernel::kBlockThreads == Roles::kGroupThreads && sizeof(InPack) == 16);

  /// The shared memory that the roles of a block have in common. Arrivals at mbarriers release, and waits acquire. That
  /// orders each reuse:
  ///
  ///   slots        read before arrivals at `summed` and `freed`; the bulk copy that overwrites them begins after both
  ///   of_warp[r]   read before the publisher's arrival at `combined`, without which the row is not written nor freed;
  ///                overwritten when row r + kMostRows has landed where it was
  ///   of_block[r]  read before `freed`; overwritten when the next row of its place is summed, which has landed there
  ///   of_row[r]    the same
  ///   staged       read before wait_for_bulk_reads(), behind which the warp that publishes stages the next row
  ///   nodes[r]     those of rows r, r + 2, …; read before the arrival at `gathered` for row r + 1, without which nobody
  ///                goes on to row r + 2
  ///
  /// (racecheck of CUDA 13.0 does not follow mbarriers through a bulk copy, and reports these reuses as hazards.)
  /// Threads only read slots, so a bulk copy needs no fence between the proxies. A State of another block is found with
  /// its tag in the same word, and nothing else is read in its wake, so that needs no order. Tags of earlier launches
  /// are cleared before any block counts as started, and nobody looks for a tag before all do.
  struct Shared {
    unsigned long long landed[kMostSlots], freed[kMostSlots], summed[kMostRows], combined[kMostRows];
    Words<typename Kernel::Order::Share> of_warp[kMostRows][Roles::kGroupWarps];
    Words<typename Kernel::Order::Share> of_helper[Roles::kPassFirst ? Roles::kGroupWarps : 1];  ///< of row 0
    Words<typename Kernel::Order::Share> of_block[Kernel::Order::kKeepsShares ? kMostRows : 1];
    Words<State> of_row[kMostRows];
    TaggedState<State> staged[kMostStaged];  ///< those of the block's part, if they are few
    unsigned long long cleared;  ///< by all warps but those that load: the States of the block
    unsigned long long started;  ///< all blocks have cleared theirs
    unsigned long long gathered;  ///< all nodes of a row are there
    unsigned long long helped;  ///< the group that writes has added up its chunks of row 0 (HeldPair)
    unsigned long long passed, passed_again;  ///< all chunks of a row that pass, if they are the first ones
    Words<State> nodes[2][Kernel::Order::kHasNodes ? kMostNodes : 1];
    unsigned again[kMostAgain / 32];  ///< a bit for each row that is to be summed again
  };

  /// The block's part of a row. Parts begin with lines of the output, and so the first may begin before the row.
  struct Part {
    Row row;
    unsigned before;   ///< packs from the line that the row begins in to its first
    Index begin, end;  ///< packs, counted from that line
  };

  /// The packs of a chunk in shared memory, for one thread of a group.
  struct Chunk : Row {
    using Row::load;

    unsigned number;      ///< in the part
    const InPack* packs;  ///< the first one
    const InPack* held;   ///< pack 0 of the row would be there

    __device__ InPack load(Index p) const { return held[p]; }
    __device__ InPack load_again(Index p) const { return held[p]; }
  };

  /// A place in the ring.
  struct Slot {
    unsigned number = 0, phase = 0;

    __device__ void advance(unsigned slots, unsigned by = 1) {
      number += by;
      if (number < slots) return;
      number -= slots;
      phase ^= 1;
    }

    /// The same for any number of slots.
    __device__ void skip(unsigned slots, unsigned by) {
      if (by == 0) return;
      number += by;
      phase ^= number / slots % 2;
      number %= slots;
    }
  };

  const typename Kernel::Arguments& arguments;
  Shared& shared;
  Rows all{arguments};
  unsigned rows = static_cast<unsigned>(all.rows);
#ifndef HONE_HOST_DEVICE
  /// Shared memory addresses: of shared.landed, and of the rings. They are computed once, if there are registers for
  /// them, since the compiler would ask for the block's place in its cluster again for every chunk.
  unsigned landed = once(shared_address(shared.landed)), rings = once(shared_address(dynamic_smem));
#endif

  __device__ InPack* packs_of(unsigned slot) const {
    const unsigned first = slot * (arguments.slot_packs + Kernel::Order::kPaddingPacks);
#ifdef HONE_HOST_DEVICE
    return reinterpret_cast<InPack*>(dynamic_smem) + first;
#else
    unsigned address = rings + first * sizeof(InPack);
    asm("" : "+r"(address));  // else the compiler makes it again for every pack
    return static_cast<InPack*>(__cvta_shared_to_generic(address));
#endif
  }

  /// Called by all threads, before a barrier of the block.
  __device__ void init_shared() const {
    const unsigned i = threadIdx.x;
    if (i < kMostSlots) {
      init_mbarrier(shared.landed + i, 1);
      init_mbarrier(shared.freed + i, Roles::kGroupWarps);
    }
    if (i < kMostRows) {
      init_mbarrier(shared.summed + i, Roles::kGroupWarps);
      init_mbarrier(shared.combined + i, 2);  // the warp that combines, and the one that publishes
    }
    if (i == 0) {
      init_mbarrier(&shared.cleared, Roles::kThreads / kWarpThreads - Roles::kLoadingWarps);
      init_mbarrier(&shared.started, 1);
      init_mbarrier(&shared.gathered, Roles::kCombiningWarps);
      init_mbarrier(&shared.helped, Roles::kGroupWarps);
      init_mbarrier(&shared.passed, Roles::kGroupWarps);
      init_mbarrier(&shared.passed_again, Roles::kGroupWarps);
    }
    publish_mbarriers();
#pragma unroll 1
    for (unsigned word = i; word < kMostAgain / 32; word += Roles::kThreads) shared.again[word] = 0;
  }

  /// The block's part of row r, for a thread of a group.
  __device__ Part part(unsigned r, unsigned thread) const {
    Part part{all.template row<Roles::kGroupThreads>(r, thread)};
    part.before = part.row.template packs_behind_line<kLinePacks>();
    const Index end = part.row.end + part.before;
    part.begin = static_cast<Index>(blockIdx.x) * arguments.part_packs;
    part.end = part.begin + arguments.part_packs < end ? part.begin + arguments.part_packs : end;
    if (blockIdx.x != 0) part.row.singles = 0;
    return part;
  }

  /// The same, computed once, if there are registers for it.
  __device__ Part settled_part(unsigned r, unsigned thread) const {
    Part part = this->part(r, thread);
    if constexpr (Roles::kHasRegisters) {
      settle(part.begin);
      settle(part.end);
    }
    return part;
  }

  /// Chunk `c` of a part, whose packs are there.
  __device__ Chunk chunk(const Part& part, unsigned c, unsigned thread, const InPack* packs) const {
    Chunk chunk{part.row, c, packs, packs};
    const Index begin = part.begin + c * arguments.slot_packs;
    const Index end = begin + arguments.slot_packs < part.end ? begin + arguments.slot_packs : part.end;
    const Index first = begin + thread < part.before ? begin + thread + Roles::kGroupThreads : begin + thread;
    chunk.first = first - part.before;
    chunk.end = end < part.before ? 0 : end - part.before;
    chunk.held += part.before;
    chunk.held -= begin;
    return chunk;
  }

  /// The same, where it is not held.
  __device__ Chunk chunk_in_memory(const Part& part, unsigned c, unsigned thread) const {
    const Index begin = part.begin + c * arguments.slot_packs;
    return chunk(part, c, thread, part.row.address(0) + begin - part.before);
  }

  __device__ Chunk landed_chunk(const Part& part, unsigned c, unsigned thread, unsigned slot, unsigned phase) const {
    sleep_until_phase(landed_in(slot), phase);
    return chunk(part, c, thread, packs_of(slot));
  }
  __device__ unsigned long long* landed_in(unsigned slot) const {
#ifdef HONE_HOST_DEVICE
    return shared.landed + slot;
#else
    return static_cast<unsigned long long*>(__cvta_shared_to_generic(landed + slot * sizeof(*shared.landed)));
#endif
  }

  __device__ unsigned passing_chunks() const { return arguments.chunks - arguments.held_chunks; }

  __device__ void free(unsigned slot, unsigned thread) const { arrive_of_warp(shared.freed + slot, thread); }

  static __device__ unsigned once(unsigned address) { return Roles::kHasRegisters ? settled(address) : address; }

  /// Arrives when all lanes of the warp are here.
  static __device__ void arrive_of_warp(unsigned long long* barrier, unsigned thread) {
    __syncwarp();
    if (thread % kWarpThreads == 0) arrive(barrier);
  }
};

}  // namespace hone
