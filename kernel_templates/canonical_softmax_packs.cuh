// RowPacks: where the packs of a row are that a lane holds, and how they are loaded and stored, for HeldChunks.
#pragma once

#include "canonical_packs.cuh"
#include "canonical_softmax_ops.cuh"

namespace hone {

/// True if so many elements from `first` on are elements of the input.
template <class T>
__device__ bool are_in(const InputBytes& input, const T* first, unsigned elements) {
  const auto begin = reinterpret_cast<unsigned long long>(first);
  return begin >= input.begin && begin + elements * sizeof(T) <= input.end;
}

/// The packs of kChunks chunks, or of a shorter row, that a lane holds: packs u < kUnroll, those of kLanes lanes side
/// by side. `columns` elements are there, from the first one on; the others have no weight. kIsWhole: all elements are
/// there, but for results if `columns` is 0. kAreWhole: all elements of a pack are there, or none.
///
/// Where rows begin anywhere, packs are aligned in the input, and each chunk is turned by the `before` elements of its
/// first pack that are before it: in their place are its last ones, if it has so many. A tree of halves does not change
/// when its leaves are turned. Torn packs of results are stored in parts, and all packs one element at a time where the
/// output is not aligned as the input is.
template <class Types, unsigned kLanes, unsigned kUnroll, unsigned kChunks, bool kAreAllThere, bool kAreWhole>
struct RowPacks {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  static constexpr unsigned kPack = Types::kPack, kUnrollOfChunk = kUnroll / kChunks;
  static constexpr unsigned kMostOfChunk = kLanes * kUnrollOfChunk * kPack;
  static constexpr bool kIsAligned = Types::kIsAligned, kIsWhole = kAreAllThere && kIsAligned;
  static_assert(kUnrollOfChunk * kChunks == kUnroll && kPack > 1 && (kIsAligned || !kAreWhole));
  static_assert(kIsAligned || (kMostOfChunk & (kMostOfChunk - 1)) == 0);

  InPack packs[kUnroll];
  unsigned before;  ///< of each chunk, if rows begin anywhere

  /// Packs that would reach beyond `input` are loaded one element at a time.
  template <class AnyPowers>
  __device__ void load(const In* first, unsigned columns, Acc factor, const InputBytes& input,
                       const AnyPowers& powers) {
    const In weightless = convert<In>(factor < Acc(0) ? highest<Acc>() : lowest<Acc>());
    if constexpr (kIsAligned) {
      load_elements(first, columns, weightless);
    } else {
      before = elements_behind_alignment<sizeof(InPack)>(first);
      const unsigned elements = (before + columns + kPack - 1) / kPack * kPack;
      Words<InPack> words[kUnroll];
      if (are_in(input, first - before, elements)) {
        load_packs(words, first, columns, weightless);
      } else {
        load_elements(first, columns, weightless);
#pragma unroll
        for (unsigned u = 0; u < kUnroll; ++u) words[u] = packs[u];
      }
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u) {
        settle(words[u]);  // else the compiler takes words apart that have elements of different packs
        packs[u] = words[u];
      }
    }
    powers.turn(packs);
  }

  /// True if some lane has an element of pack u.
  __device__ bool has_any(unsigned u, unsigned columns) const { return kAreAllThere || place(u) < behind(columns); }

  /// True if element e of the lane's pack u is there.
  __device__ bool has(unsigned u, unsigned e, unsigned columns) const {
    if (kAreWhole) return is_there(u, columns);
    return kAreAllThere || begin(u) + e + (e < ahead(u) ? kMostOfChunk : 0) < behind(columns);
  }
  /// True if all lanes have all elements of pack u.
  __device__ bool has_all(unsigned u, unsigned columns) const {
    if (kAreAllThere) return true;
    const bool begins_chunk = !kIsAligned && u % kUnrollOfChunk == 0 && before > 0;
    return place(u) + kLanes * kPack <= behind(columns) &&
           !(begins_chunk && place(u) + kMostOfChunk + before > behind(columns));
  }

  /// Stores result(u, e) for element e of each pack u that is there, after take(u).
  template <class Take, class Result>
  __device__ void write(Out* first, unsigned columns, const Take& take, const Result& result) const {
    const bool in_step = kIsAligned || elements_behind_alignment<sizeof(OutPack)>(first) == before;
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      if (kIsWhole ? columns == 0 : !is_there(u, columns)) continue;
      take(u);
      const OutPack pack = OutPack::of([&](unsigned e) { return result(u, e); });
      if (kIsWhole || kAreWhole || (in_step && is_whole(u, columns))) {
        auto* const to = reinterpret_cast<OutPack*>(address(first, u));
        // The compiler stores some packs of logarithms in four parts; in one, wider elements would spill.
        if constexpr (kIsWhole || kAreWhole || (Types::kLog && sizeof(In) < sizeof(Acc))) store_streaming(to, pack);
        else *to = pack;
      } else if constexpr (kIsAligned) {  // one by one: where a lane has few registers, bits of a pack would spill
        unrolled<kPack>([&](unsigned e) {
          if (begin(u) + e < columns) first[begin(u) + e] = pack[e];
        });
      } else {
        store_elements(address(first, u), pack, u, columns, in_step);
      }
    }
  }

 private:
  /// If Types::kForgetsLane, the compiler computes what depends on it where it is needed, not once for all loops.
  static __device__ unsigned lane() {
    unsigned lane = threadIdx.x % kLanes;
    if constexpr (Types::kForgetsLane) settle(lane);
    return lane;
  }
  /// Where pack u of a lane is, behind its first one.
  static __device__ unsigned place(unsigned u) { return u * kLanes * kPack; }
  __device__ unsigned behind(unsigned columns) const { return kIsAligned ? columns : columns + before; }

  /// Where the lane's pack u is, which may begin before the row.
  template <class T>
  __device__ T* address(T* first, unsigned u) const {
    T* const of_lane = first + lane() * kPack;
    if constexpr (kIsAligned) return of_lane + place(u);
    return of_lane - before + place(u);
  }
  static __device__ const InPack* pack_at(const In* from) { return reinterpret_cast<const InPack*>(from); }
  /// Where the lane's pack u begins among those of all lanes.
  static __device__ unsigned begin(unsigned u) { return place(u) + lane() * kPack; }
  /// How many elements of pack u are before its chunk.
  __device__ unsigned ahead(unsigned u) const {
    return !kIsAligned && u % kUnrollOfChunk == 0 && lane() == 0 ? before : 0;
  }
  __device__ bool is_there(unsigned u, unsigned columns) const { return kAreAllThere || begin(u) < behind(columns); }
  /// True if all elements of pack u are there, one behind the other.
  __device__ bool is_whole(unsigned u, unsigned columns) const {
    if (kAreWhole) return is_there(u, columns);
    return (kAreAllThere || begin(u) + kPack <= behind(columns)) && ahead(u) == 0;
  }

  /// Calls act(which, at) for the elements of pack u, if it is_there(): those of the bits `which` of the pack that is
  /// `at` elements behind it, first at its own place, then at the chunk's end.
  template <class Act>
  __device__ void for_elements(unsigned u, unsigned columns, const Act& act) const {
    const auto first = [](unsigned count) { return count < kPack ? (1u << count) - 1 : (1u << kPack) - 1; };
    const unsigned there = behind(columns) - begin(u), of_end = first(ahead(u));
    act(first(there) & ~of_end, 0u);
    if (!kIsAligned && u % kUnrollOfChunk == 0 && there > kMostOfChunk)
      act(of_end & first(there - kMostOfChunk), kMostOfChunk);
  }

  __device__ void load_elements(const In* first, unsigned columns, In weightless) {
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      if (kIsWhole || is_whole(u, columns)) {
        packs[u] = *pack_at(address(first, u));
      } else {
        packs[u] = InPack::filled(weightless);
        if (!kAreWhole && is_there(u, columns))
          for_elements(u, columns, [&](unsigned which, unsigned at) {
            unrolled<kPack>([&](unsigned e) {
              if (which >> e & 1) packs[u].set(e, address(first, u)[at + e]);
            });
          });
      }
    }
  }

  /// Loads whole packs, and drops what is around the row, which others may be writing. All are in flight before one is
  /// looked at.
  __device__ void load_packs(Words<InPack> (&words)[kUnroll], const In* first, unsigned columns, In weightless) const {
    using Mask = PackMask<InPack>;
    Words<InPack> absent = InPack::filled(weightless), ends[kChunks];
    settle(absent);
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      words[u] = absent;
      if (begin(u) + ahead(u) < behind(columns)) words[u] = load_beside_writers(pack_at(address(first, u)));
    }
    const auto end_is_there = [&](unsigned u) { return ahead(u) > 0 && begin(u) + kMostOfChunk < behind(columns); };
#pragma unroll
    for (unsigned k = 0; k < kChunks; ++k) {
      const unsigned u = k * kUnrollOfChunk;
      ends[k] = absent;
      if (end_is_there(u)) ends[k] = load_beside_writers(pack_at(address(first, u) + kMostOfChunk));
    }
    Mask of_last = Mask::of_first(behind(columns) % kPack * sizeof(In)), of_end = Mask::of_first(before * sizeof(In));
    settle(of_last.mask);
    settle(of_end.mask);
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u)
      if (begin(u) + kPack > behind(columns)) words[u] = of_last.joined(words[u], absent);
#pragma unroll
    for (unsigned k = 0; k < kChunks; ++k) {
      const unsigned u = k * kUnrollOfChunk;
      if (begin(u) + kMostOfChunk + kPack > behind(columns)) ends[k] = of_last.joined(ends[k], absent);
      if (ahead(u) > 0) words[u] = of_end.joined(ends[k], words[u]);
    }
  }

  /// Stores the elements of pack u that are there.
  __device__ void store_elements(Out* to, const OutPack& pack, unsigned u, unsigned columns, bool is_aligned) const {
    const unsigned of_end = ahead(u), there = kAreAllThere ? kMostOfChunk + of_end : behind(columns) - begin(u);
    if (!is_aligned || (of_end > 0 && there < kPack)) {
      for_elements(u, columns, [&](unsigned which, unsigned at) {
        unrolled<kPack>([&](unsigned e) {
          if (which >> e & 1) to[at + e] = pack[e];
        });
      });
    } else if (u % kUnrollOfChunk != 0 || of_end == 0) {
      store_part<false>(to, pack, there);
    } else {
      store_part<true>(to, pack, kPack - of_end);
      if (there > kMostOfChunk) store_part<false>(to + kMostOfChunk, pack, at_most(there - kMostOfChunk, of_end));
    }
  }
};

}  // namespace hone
