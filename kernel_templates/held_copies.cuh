// HeldCopies: the bulk copies by which two threads of a block of row_held.cuh fill its rings.
//
// If the first chunks of a part pass, one of them copies those that are held, and the other those that pass: a copy
// that waits for its slot would keep others whose slots are free.
#pragma once

#include "held_parts.cuh"

namespace hone {

template <class Kernel, class Roles_>
struct HeldCopies : HeldParts<Kernel, Roles_> {
  using Parts = HeldParts<Kernel, Roles_>;
  using typename Parts::Index, typename Parts::InPack, typename Parts::Part, typename Parts::Roles;
  using typename Parts::Slot;
  using Parts::arguments, Parts::rows, Parts::shared;

  /// Called by a thread of each of the warps that load.
  __device__ void load_rows(unsigned warp) const {
    if constexpr (!Roles::kPassFirst) {
      if (warp == 0) load_passing_last();
    } else {
      if (warp == 0) load_held();
      else load_passing();
    }
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
          sleep_until_phase(shared.landed + landing.slot(), landing.phase());
          landing.advance();
        } else {
          ++in_flight;
        }
        start(part, copy.chunk(), copy.is_again(), copy.slot(), copy.phase(), copy.is_last_use() ? last_use : reuse);
      } while (!copy.advance());
    }
  }

  /// A few of them are in flight. Slots are free when the row before is written.
  __device__ void load_held() const {
    const unsigned long long last_use = last_use_policy();
    Slot held{.phase = 1}, landing;
    unsigned in_flight = 0;
#pragma unroll 1
    for (unsigned r = 0; r < rows; ++r) {
      const Part part = this->part(r, 0);
#pragma unroll 1
      for (unsigned c = this->passing_chunks(); c < arguments.chunks; ++c) {
        if (in_flight == arguments.lag) {
          sleep_until_phase(shared.landed + landing.number, landing.phase);
          landing.advance(arguments.slots);
        } else {
          ++in_flight;
        }
        start(part, c, false, held.number, held.phase, last_use);
        held.advance(arguments.slots);
      }
    }
  }

  /// The first copies of row r, to slots that are free when row r − 2 is written, and then the second ones of row
  /// r − 1, the last chunk first, to slots that are free when these chunks of row r are added up.
  __device__ void load_passing() const {
    const unsigned long long last_use = last_use_policy(), reuse = reuse_policy();
    const unsigned count = this->passing_chunks();
    Slot passing{.phase = 1};
    const auto pass = [&](const Part& part, unsigned c, bool is_again) {
      start(part, c, is_again, arguments.slots + passing.number, passing.phase, is_again ? last_use : reuse);
      passing.advance(arguments.passing_slots);
    };
#pragma unroll 1
    for (unsigned r = 0; count > 0 && r <= rows; ++r) {
      if (r < rows) {
        const Part part = this->part(r, 0);
#pragma unroll 1
        for (unsigned c = 0; c < count; ++c) {
          pass(part, c, false);
          if (r > 0 && c < Roles::kAhead && count + c < arguments.chunks) fetch_to_l2(part, count + c);
        }
      }
      if (r == 0) continue;
      const Part before = this->part(r - 1, 0);
#pragma unroll 1
      for (unsigned c = count; c-- > 0;) pass(before, c, true);
    }
  }

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
    sleep_until_phase(shared.freed + slot, phase);
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
