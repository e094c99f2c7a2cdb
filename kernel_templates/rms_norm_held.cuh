// RMS normalisation of long rows that a grid holds in shared memory: the Kernel of row_held.cuh.
//
// Rows may begin at any element (rms_norm_row.cuh). Packs have 16 bytes and are aligned in x, as bulk copies want them.
// The columns of a block are the same in all rows, so their weights may stay in L1. kAligned: all rows of all arrays
// are whole numbers of aligned packs.
#pragma once

#include "rms_norm.cuh"
#include "row_held.cuh"

namespace hone {

template <class T, class Index_, bool kAligned, bool kHasWeight, unsigned kBlockThreads_>
struct RmsNormHeld {
  using Index = Index_;
  using Arguments = RmsNormArguments;
  using State = float;
  using Results = float;
  static constexpr unsigned kBlockThreads = kBlockThreads_, kElements = 16 / sizeof(T);
  using Norm = RmsNorm<T, Index, kElements, kHasWeight, false, kWarpThreads, kBlockThreads, 1, 1, false, !kAligned,
                       AlignedIn::x>;
  using Op = typename Norm::Squares;
  using InPack = typename Norm::ElementPack;
  using Order = AnyOrder<RmsNormHeld>;

  /// The packs first, first + kBlockThreads, … < end of a row, and its single elements, for one thread.
  struct Row : Norm::Row {
    using Norm::Row::range, Norm::Row::single, Norm::Row::weight, Norm::Row::x, Norm::Row::y;
    Index first = this->thread, singles = range.singles();

    __device__ const InPack* address(Index p) const { return this->packs(x) + p; }

    /// The packs from the last address of y that begins a line of kLinePacks to its first pack.
    template <unsigned kLinePacks>
    __device__ unsigned packs_behind_line() const {
      return elements_behind_alignment<kLinePacks * sizeof(InPack)>(this->elements(y)) / kElements;
    }

    /// The single element of the thread, or a neutral one.
    __device__ T load_single() const { return has_single_of_part() ? x.elements[single()] : Op::neutral(); }
    __device__ void write_singles(float factor, T element) const {
      const Index i = single();
      if (has_single_of_part()) y.elements[i] = Norm::result_of(element, (kHasWeight ? weight : x).elements[i], factor);
    }

   private:
    /// The parts of a row but the first have no single elements.
    __device__ bool has_single_of_part() const {
      static_assert(kAligned || kBlockThreads >= Norm::Row::kMostSingles);
      return this->thread < singles;
    }
  };

  /// The rows of a call.
  struct Rows {
    const Arguments& arguments;
    unsigned rows = static_cast<unsigned>(arguments.rows);

    template <unsigned>
    __device__ Row row(unsigned r, unsigned thread) const {
      return Row{{arguments, r, thread}};
    }
  };

  static __device__ Op op(const Rows&) { return Op(); }

  /// The sum of a thread's packs, and its single element, which is added last: its load has time until then.
  struct Sums {
    float of_packs;
    T single;
  };

  static __device__ Sums sums_of_part(const Row& part, unsigned, const Rows&) {
    return {Op::identity(), part.load_single()};
  }
  static __device__ Sums sums_of_chunks(const Row&, Index, const Rows&) { return {Op::identity(), Op::neutral()}; }

  template <unsigned kTile>
  static __device__ void add_held(Sums& sums, const auto& chunk, const Rows&) {
    for (Index p = chunk.first; p < chunk.end; p += kTile * kBlockThreads) {
      InPack tile[kTile];
      load_held(tile, chunk, p);
      Op::accumulate(sums.of_packs, tile, Index(0), Index(0));
    }
  }

  static __device__ float state_of(const Sums& sums, const Rows&) {
    return Op::combine(sums.of_packs, Op::of(sums.single, Index(0)));
  }

  static __device__ float results_of(float sum, const Rows& all) { return Norm::factor_of(sum, all.arguments); }

  template <unsigned kTile>
  static __device__ void write_held(const auto& chunk, float factor) {
    for (Index p = chunk.first; p < chunk.end; p += kTile * kBlockThreads) {
      InPack tile[kTile], weights[kTile];
      if constexpr (kHasWeight) chunk.load(weights, chunk.weight, p);
      load_held(tile, chunk, p);
      chunk.template store<kTile, true>(chunk.y, p, [&](unsigned u) {
        return InPack::of([&](unsigned e) { return Norm::result_of(tile[u][e], weights[u][e], factor); });
      });
    }
  }

 private:
  /// Packs p, p + kBlockThreads, … of a chunk in shared memory; behind the last one, zeros.
  template <unsigned kTile>
  static __device__ void load_held(InPack (&tile)[kTile], const auto& chunk, Index p) {
    unrolled<kTile>([&](unsigned u) {
      const Index at = p + u * kBlockThreads;
      tile[u] = at < chunk.end ? chunk.load(at) : InPack::filled(Op::neutral());
    });
  }
};

}  // namespace hone
