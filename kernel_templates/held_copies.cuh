// HeldCopies: the bulk copies by which one thread of a block of row_held.cuh fills its rings.
#pragma once

#include "held_parts.cuh"

namespace hone {

template <class Kernel, unsigned kThreads, unsigned kTurns>
struct HeldCopies : HeldParts<Kernel, kThreads, kTurns> {
  using Parts = HeldParts<Kernel, kThreads, kTurns>;
  using typename Parts::Index, typename Parts::InPack, typename Parts::Part, typename Parts::Slot;
  using Parts::arguments, Parts::rows, Parts::shared;

  /// The copies of a row one after the other: its chunks, and those that pass once more, the last of them first.
  struct Copy {
    const typename Kernel::Arguments& arguments;
    Slot held, passing;
    unsigned number = 0;

    __device__ bool is_held() const { return number < arguments.held_chunks; }
    __device__ bool is_again() const { return number >= arguments.chunks; }
    /// Of the chunks that pass, the first one that stays in its slot.
    __device__ unsigned first_staying() const { return arguments.chunks - arguments.passing_slots; }
    __device__ bool is_last_use() const { return is_held() || number >= first_staying(); }
    __device__ unsigned chunk() const {
      return is_again() ? first_staying() - 1 - (number - arguments.chunks) : number;
    }
    __device__ unsigned slot() const { return is_held() ? held.number : arguments.slots + passing.number; }
    __device__ unsigned phase() const { return is_held() ? held.phase : passing.phase; }

    /// Returns true behind the last copy of a row.
    __device__ bool advance() {
      if (is_held()) held.advance(arguments.slots);
      else passing.advance(arguments.passing_slots);
      if (++number < arguments.chunks + first_staying() - arguments.held_chunks) return false;
      number = 0;
      return true;
    }
  };

  /// A few chunks are in flight: with all of the ring, the chunks that everybody waits for would come late.
  __device__ void load_rows() const {
    const unsigned long long last_use = last_use_policy(), reuse = reuse_policy();
    Copy copy{arguments, {.phase = 1}, {.phase = 1}}, landing{arguments};
    unsigned in_flight = 0;
#pragma unroll 1
    for (unsigned r = 0; r < rows; ++r) {
      const Part part = this->part(r, 0);
#pragma unroll 1
      do {
        if (in_flight == arguments.lag) {
          wait_for_phase(shared.landed + landing.slot(), landing.phase());
          landing.advance();
        } else {
          ++in_flight;
        }
        wait_for_phase(shared.freed + copy.slot(), copy.phase());
        const Index begin = part.begin + copy.chunk() * arguments.slot_packs;
        Index end = begin + arguments.slot_packs < part.end ? begin + arguments.slot_packs : part.end;
        if constexpr (Kernel::Order::kPaddingPacks > 0) {
          const Index behind = part.row.end + part.before;
          if (part.before > 0 && end < behind && !copy.is_again()) ++end;  // the next chunk's first pack
        }
        const Index first = begin < part.before ? part.before : begin;
        unsigned long long* const landed = shared.landed + copy.slot();
        if (first < end)
          arrive_with_bulk_copy(this->packs_of(copy.slot()) + (first - begin),
                                part.row.address(first - part.before),
                                static_cast<unsigned>(end - first) * sizeof(InPack), landed,
                                copy.is_last_use() ? last_use : reuse);
        else arrive(landed);
      } while (!copy.advance());
    }
  }
};

}  // namespace hone
