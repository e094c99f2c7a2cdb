// HeldTurns: the groups of warps of row_held.cuh, of which those of a kind take rows in turn. If chunks of a part pass,
// they are its last ones.
#pragma once

#include "held_again.cuh"

namespace hone {

template <class Kernel, class Roles_, unsigned kTile>
struct HeldTurns : HeldAgain<Kernel, Roles_, kTile> {
  using Parts = HeldAgain<Kernel, Roles_, kTile>;
  using typename Parts::Chunk, typename Parts::Part, typename Parts::Roles, typename Parts::Slot;
  using Parts::all, Parts::arguments, Parts::rows, Parts::shared;
  using Order = typename Kernel::Order;

  /// Waits until row r is added up. Returns the number of warps that have a Share of it.
  __device__ unsigned wait_for_sums(unsigned r) const {
    this->wait_for_group(r);
    return Roles::kGroupWarps;
  }

  /// Called by all threads of group `turn` of a kind.
  __device__ void take_rows(bool is_sum, unsigned turn, unsigned thread) const {
    if (is_sum) sum_rows(turn, thread);
    else write_rows(turn, thread);
  }

 private:
  __device__ void sum_rows(unsigned turn, unsigned thread) const {
    Slot passing;
    for_rows(turn, [&](unsigned r, Slot& slot) {
      const Part part = this->part(r, thread);
      // Behind it, the sums of an earlier row have been read.
      if (Order::kKeepsSums) sleep_until_phase(shared.landed + slot.number, slot.phase);
      auto sums = Kernel::sums_of_part(part.row, r, all);
      const auto add = [&](const Chunk& chunk, unsigned) { Kernel::template add_held<kTile>(sums, chunk, all); };
      for_held_chunks(slot, part, thread, add);
      for_passing_chunks<false>(passing, part, thread, add);
      passing.skip(arguments.passing_slots, chunks_again());  // second copies
      this->share(sums, r, thread / kWarpThreads, thread);
    });
  }

  __device__ void write_rows(unsigned turn, unsigned thread) const {
    Slot passing;
    for_rows(turn, [&](unsigned r, Slot& slot) {
      const Part part = this->part(r, thread);
      const auto single = part.row.load_single();
      sleep_until_phase(shared.landed + slot.number, slot.phase);
      const auto row = this->known_row(r);
      if (row.is_again && thread == 0) this->note_again(r);
      if (!row.is_again) part.row.write_singles(row.results, single);
      const auto write = [&](const Chunk& chunk, unsigned of_slot) {
        if (!row.is_again) Kernel::template write_held<kTile>(chunk, row.results);
        this->free(of_slot, thread);
      };
      passing.skip(arguments.passing_slots, chunks_again());  // first copies
      for_passing_chunks<true>(passing, part, thread, write);
      for_held_chunks(slot, part, thread, write);
    });
  }

  /// Chunks that pass twice: the first ones of those that pass.
  __device__ unsigned chunks_again() const { return this->passing_chunks() - arguments.passing_slots; }

  /// Calls act(r, slot) for each row of group `turn`, where `slot` is that of its first chunk, and moves on.
  __device__ void for_rows(unsigned turn, const auto& act) const {
    Slot slot;
    slot.advance(arguments.slots, turn * arguments.held_chunks);
#pragma unroll 1
    for (unsigned r = turn; r < rows; r += Roles::kTurns) {
      act(r, slot);
      slot.advance(arguments.slots, (Roles::kTurns - 1) * arguments.held_chunks);
    }
  }

  /// Calls act(chunk, slot) for the chunks of a part that are held, each when it has landed, from slot `slot` on.
  __device__ void for_held_chunks(Slot& slot, const Part& part, unsigned thread, const auto& act) const {
#pragma unroll 1
    for (unsigned c = 0; c < arguments.held_chunks; ++c) {
      act(this->landed_chunk(part, c, thread, slot.number, slot.phase), slot.number);
      slot.advance(arguments.slots);
    }
  }

  /// The same for those that pass, of which it frees those that are to pass again; if kIsAgain, for those that have
  /// stayed, and then the others, the last one first, and it frees none.
  template <bool kIsAgain>
  __device__ void for_passing_chunks(Slot& slot, const Part& part, unsigned thread, const auto& act) const {
    const unsigned count = this->passing_chunks();
#pragma unroll 1
    for (unsigned i = 0; i < count; ++i) {
      unsigned c = arguments.held_chunks + i;
      if (kIsAgain) c = i < arguments.passing_slots ? c + chunks_again() : arguments.held_chunks + count - 1 - i;
      const unsigned at = arguments.slots + slot.number;
      act(this->landed_chunk(part, c, thread, at, slot.phase), at);
      if (!kIsAgain && i < chunks_again()) this->free(at, thread);
      slot.advance(arguments.passing_slots);
    }
  }
};

}  // namespace hone
