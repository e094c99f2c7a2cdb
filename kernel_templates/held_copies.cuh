// HeldCopies: the bulk copies by which one thread of a block of row_held.cuh fills its rings.
#pragma once

#include "held_parts.cuh"

namespace hone {

template <class Kernel, class Roles_>
struct HeldCopies : HeldParts<Kernel, Roles_> {
  using Parts = HeldParts<Kernel, Roles_>;
  using typename Parts::Index, typename Parts::InPack, typename Parts::Part, typename Parts::Roles;
  using typename Parts::Slot;
  using Parts::arguments, Parts::rows, Parts::shared;

  __device__ void load_rows() const {
    if constexpr (Roles::kPassFirst) load_passing_first();
    else load_passing_last();
  }

 private:
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
  __device__ void load_passing_last() const {
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
        start(part, copy.chunk(), copy.is_again(), copy.slot(), copy.phase(), copy.is_last_use() ? last_use : reuse);
      } while (!copy.advance());
    }
  }

  /// A few chunks that are held are in flight, and those that pass. Second copies of row r − 1 for which there are free
  /// slots come before the chunks of row r that are held, whose slots are free when those of row r − 1 are written. Those
  /// of the first row are free at once, and another group adds them up meanwhile.
  __device__ void load_passing_first() const {
    Copies copies{*this};
    const unsigned count = this->passing_chunks();
    const unsigned late = count > arguments.passing_slots ? count - arguments.passing_slots : 0;
#pragma unroll 1
    for (unsigned r = 0; r < rows + (count > 0 ? 1 : 0); ++r) {
      const bool is_row = r < rows;
      const Part part = this->part(is_row ? r : 0, 0), before = this->part(r > 0 ? r - 1 : 0, 0);
      unsigned next = count;  // of the chunks that are held
#pragma unroll 1
      for (unsigned c = 0; is_row && c < count; ++c) {
        copies.template pass<false>(part, c);
        if (r == 0 && c + 1 >= arguments.passing_slots && next < arguments.chunks) copies.hold(part, next++);
        if constexpr (Roles::kAhead > 0) {
          if (r > 0 && c < Roles::kAhead && next + c < arguments.chunks) fetch_to_l2(part, next + c);
        }
      }
      unsigned again = r > 0 ? count : 0;
#pragma unroll 1
      while (again > late) copies.template pass<true>(before, --again);
#pragma unroll 1
      while (is_row && next < arguments.chunks) copies.hold(part, next++);
#pragma unroll 1
      while (again > 0) copies.template pass<true>(before, --again);
    }
  }

  struct Copies {
    const HeldCopies& all;
    Slot held{.phase = 1}, passing{.phase = 1}, landing;
    unsigned in_flight = 0;
    unsigned long long last_use = last_use_policy(), reuse = reuse_policy();

    __device__ void hold(const Part& part, unsigned c) {
      if (in_flight == all.arguments.lag) {
        wait_for_phase(all.shared.landed + landing.number, landing.phase);
        landing.advance(all.arguments.slots);
      } else {
        ++in_flight;
      }
      all.start(part, c, false, held.number, held.phase, last_use);
      held.advance(all.arguments.slots);
    }
    template <bool kIsAgain>
    __device__ void pass(const Part& part, unsigned c) {
      all.start(part, c, kIsAgain, all.arguments.slots + passing.number, passing.phase, kIsAgain ? last_use : reuse);
      passing.advance(all.arguments.passing_slots);
    }
  };

  __device__ Index begin_of(const Part& part, unsigned c) const { return part.begin + c * arguments.slot_packs; }
  __device__ Index end_of(const Part& part, unsigned c) const {
    const Index end = begin_of(part, c) + arguments.slot_packs;
    return end < part.end ? end : part.end;
  }

  __device__ void fetch_to_l2(const Part& part, unsigned c) const {
    const Index begin = begin_of(part, c), first = begin < part.before ? part.before : begin, end = end_of(part, c);
    if (first < end)
      prefetch_to_l2(part.row.address(first - part.before), static_cast<unsigned>(end - first) * sizeof(InPack));
  }

  /// Starts the copy of a chunk when its slot is free.
  __device__ void start(const Part& part, unsigned c, bool is_again, unsigned slot, unsigned phase,
                        unsigned long long policy) const {
    wait_for_phase(shared.freed + slot, phase);
    const Index begin = begin_of(part, c);
    Index end = end_of(part, c);
    if constexpr (Kernel::Order::kPaddingPacks > 0) {
      const Index behind = part.row.end + part.before;
      if (part.before > 0 && end < behind && !is_again) ++end;  // the next chunk's first pack
    }
    const Index first = begin < part.before ? part.before : begin;
    unsigned long long* const landed = shared.landed + slot;
    if (first < end)
      arrive_with_bulk_copy(this->packs_of(slot) + (first - begin), part.row.address(first - part.before),
                            static_cast<unsigned>(end - first) * sizeof(InPack), landed, policy);
    else arrive(landed);
  }
};

}  // namespace hone
