// HeldPair: the two groups of warps of row_held.cuh, one that adds up rows and one that writes them, where the first
// chunks of a part pass, or none.
//
// There is nothing to write before the first row is known, and no more to add up behind the last one: then each group
// takes half of the chunks.
#pragma once

#include "held_again.cuh"

namespace hone {

template <class Kernel, class Roles_, unsigned kTile>
struct HeldPair : HeldAgain<Kernel, Roles_, kTile> {
  using Parts = HeldAgain<Kernel, Roles_, kTile>;
  using typename Parts::Part, typename Parts::Roles, typename Parts::Slot;
  using Parts::all, Parts::arguments, Parts::rows, Parts::shared;
  using Order = typename Kernel::Order;

  /// Waits until row r is added up. Returns the number of warps that have a Share of it.
  __device__ unsigned wait_for_sums(unsigned r) const {
    this->wait_for_group(r);
    if (r > 0) return Roles::kGroupWarps;
    sleep_until_phase(&shared.helped, 0);
    return 2 * Roles::kGroupWarps;
  }

  /// Called by all threads of both groups, which take no turns.
  __device__ void take_rows(bool is_sum, unsigned, unsigned thread) const {
    const unsigned count = arguments.chunks, half = half_of_part();
#pragma unroll 1
    for (unsigned r = 0; r < rows; ++r) {
      const bool is_first = r == 0, is_last = r + 1 == rows;
      if (is_sum || is_first) sum_row(r, {is_sum ? 0 : half, is_sum && is_first ? half : count}, is_sum, thread);
      if (!is_sum || is_last) write_row(r, {is_sum || !is_last ? 0 : half, is_sum ? half : count}, is_sum, thread);
    }
  }

 private:
  struct Chunks {
    unsigned begin, end;
  };

  /// Chunks before the second half, which has none that pass.
  __device__ unsigned half_of_part() const {
    return larger<true>((arguments.chunks + 1) / 2, this->passing_chunks());
  }

  /// Returns the chunks of `some` that are held; and those that pass.
  __device__ Chunks held_ones(Chunks some) const {
    return {larger<true>(some.begin, this->passing_chunks()), some.end};
  }
  __device__ Chunks passing_ones(Chunks some) const {
    return {some.begin, smaller<true>(some.end, this->passing_chunks())};
  }

  /// A slot of the ring of what is held, or of what passes, whose slots are `begin` to `end`.
  struct Place {
    unsigned begin, end, slot, phase;

    /// Else the compiler would choose between the rings again for each chunk.
    __device__ void settle_ring() {
      settle(begin);
      settle(end);
    }
    __device__ void advance() {
      if (++slot != end) return;
      slot = begin;
      phase ^= 1;
    }
  };
  __device__ Place held_place(Slot slot) const { return {0, arguments.slots, slot.number, slot.phase}; }
  __device__ Place passing_place(Slot slot) const {
    return {arguments.slots, arguments.slots + arguments.passing_slots, arguments.slots + slot.number, slot.phase};
  }

  /// True if writing has a loop for each ring, and so fewer instructions a chunk, where they are what takes the time:
  /// reproducible softmax of 4 rows of 2^24 f16 takes 90.7 µs so, and 91.0 by one loop; fast softmax of 3 of 20000000,
  /// which waits for memory, 81.6 and 80.6 (H200, CUDA 13.0, 2026-11-30, one launch after the other).
  static constexpr bool kHasLoopOfRing = Roles::kHasRegisters;

  /// Where chunk c of row r is, which is held.
  __device__ Slot held_slot(unsigned r, unsigned c) const {
    Slot slot;
    slot.skip(arguments.slots, r * arguments.held_chunks + (c - this->passing_chunks()));
    return slot;
  }
  /// Where the first of the chunks that pass is. Those of row r + 1 pass for the first time before those of row r do
  /// once more.
  template <bool kIsAgain>
  __device__ Slot passing_slot(unsigned r) const {
    const unsigned before = kIsAgain ? 2 * r + (r + 1 < rows ? 2 : 1) : r > 0 ? 2 * r - 1 : 0;
    Slot slot;
    slot.skip(arguments.passing_slots, before * this->passing_chunks());
    return slot;
  }

  /// Adds up chunks of row r.
  __device__ void sum_row(unsigned r, Chunks chunks, bool is_sum, unsigned thread) const {
    const Part part = this->part(r, thread);
    const unsigned passing_chunks = this->passing_chunks();
    // Behind it, the sums of an earlier row have been read, and what was to pass before has landed in its slots.
    if (passing_chunks == 0) {
      const Slot first = held_slot(r, 0);
      if (Order::kKeepsSums) sleep_until_phase(shared.landed + first.number, first.phase);
    } else if (r > 1) {
      sleep_until_phase(&shared.passed_again, r % 2);
    }
    auto sums = chunks.begin == 0 ? Kernel::sums_of_part(part.row, r, all)
                                  : Kernel::sums_of_chunks(part.row, chunks.begin * arguments.slot_packs, all);
    const Place held = held_place(held_slot(r, held_ones(chunks).begin));
    const Place passing = passing_place(passing_slot<false>(r));
    // The other group waits for this one, which chooses between the rings once, not for each chunk.
#pragma unroll 1
    for (unsigned kind = 0; kind < 2; ++kind) {
      const bool are_held = kind == 1;
      const Chunks some = are_held ? held_ones(chunks) : passing_ones(chunks);
      if (some.begin >= some.end) continue;
      if (r == 1 && are_held) sleep_until_phase(&shared.helped, 0);  // the first row has landed in all slots
      Place place = are_held ? held : passing;
      place.settle_ring();
#pragma unroll 1
      for (unsigned c = some.begin; c < some.end; ++c, place.advance()) {
        const auto chunk = this->landed_chunk(part, c, thread, place.slot, place.phase);
        Kernel::template add_held<kTile>(sums, chunk, all);
        if (!are_held) this->free(place.slot, thread);
      }
      if (!are_held) this->arrive_of_warp(&shared.passed, thread);
    }
    this->share(sums, r, thread / kWarpThreads + (is_sum ? 0 : Roles::kGroupWarps), thread);
  }

  /// Writes chunks of row r: what is held, and then what passes, the last one first.
  __device__ void write_row(unsigned r, Chunks chunks, bool is_sum, unsigned thread) const {
    const Part part = this->settled_part(r, thread);
    const unsigned passing_chunks = this->passing_chunks(), first_held = held_ones(chunks).begin;
    Place held = held_place(held_slot(r, first_held)), passing = passing_place(passing_slot<true>(r));
    const Slot first = held_slot(r, passing_chunks);
    const auto single = part.row.load_single();  // of no use to the group that sums
    sleep_until_phase(shared.landed + first.number, first.phase);
    const auto row = this->known_row(r);
    if (row.is_again && !is_sum && thread == 0) this->note_again(r);
    if (!row.is_again && !is_sum) part.row.write_singles(row.results, single);
    const auto write = [&](unsigned c, unsigned slot, unsigned phase) {
      const auto chunk = this->landed_chunk(part, c, thread, slot, phase);
      if (!row.is_again) Kernel::template write_held<kTile>(chunk, row.results);
      this->free(slot, thread);
    };
    if constexpr (kHasLoopOfRing) {
#pragma unroll 1
      for (unsigned kind = 0; kind < 2; ++kind) {
        const bool are_held = kind == 0;
        const Chunks some = are_held ? held_ones(chunks) : passing_ones(chunks);
        if (some.begin >= some.end) continue;
        if (!are_held) wait_for_other_group(r, is_sum);
        Place place = are_held ? held : passing;
        place.settle_ring();
#pragma unroll 1
        for (unsigned i = 0; i < some.end - some.begin; ++i, place.advance())
          write(are_held ? some.begin + i : some.end - 1 - i, place.slot, place.phase);
      }
    } else {
#pragma unroll 1
      for (unsigned i = 0; i < chunks.end - chunks.begin; ++i) {
        const bool is_held = i < chunks.end - first_held;
        const unsigned c = is_held ? first_held + i : chunks.end - 1 - i;
        if (c + 1 == passing_chunks) wait_for_other_group(r, is_sum);
        write(c, is_held ? held.slot : passing.slot, is_held ? held.phase : passing.phase);
        if (is_held) held.advance();
        else passing.advance();
      }
    }
    if (passing_chunks > 0 && r + 1 < rows) this->arrive_of_warp(&shared.passed_again, thread);
  }

  /// Before chunks of row r pass once more: what was copied to their slots before has landed.
  __device__ void wait_for_other_group(unsigned r, bool is_sum) const {
    if (!is_sum && r + 1 < rows) sleep_until_phase(&shared.passed, (r + 1) % 2);
    if (is_sum && r > 0) sleep_until_phase(&shared.passed_again, (r - 1) % 2);
  }
};

}  // namespace hone
