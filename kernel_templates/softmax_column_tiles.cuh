// Tiles of neighbouring columns for softmax_columns.cuh, as the packs of one thread: a Line of softmax_shares.cuh whose
// packs are the rows first, first + stride, … < end.
//
// AlignedColumnTile: packs are aligned in every row, and `inner` is whole packs. PhaseMatchedColumnTile: aligned packs
// of rows that begin anywhere. In shared memory a tile has kSlots places for its columns, the first one at kFirstSlot.
#pragma once

#include "softmax_shares.cuh"

namespace hone {

/// kElements: columns per pack. kPhaseMatched_: rows begin anywhere.
template <class In, class Out, class Acc, bool kLog, unsigned kElements, bool kPhaseMatched_>
struct ColumnTypes : SoftmaxPackTypes<In, Out, Acc, long long, kLog, kElements, kElements> {
  static constexpr bool kPhaseMatched = kPhaseMatched_;
};

template <class Types, unsigned kBlockThreads, unsigned kLanes>
struct AlignedColumnTile {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  using Sums = SoftmaxSums<Types>;
  using Single = SoftmaxSingle<In>;
  using Scale = typename Types::Scale;
  using Arguments = SoftmaxColumnsArguments<typename Types::Acc>;
  static constexpr unsigned kElements = Types::kElements;
  static constexpr unsigned kColumns = kLanes * kElements, kSlots = kColumns, kFirstSlot = 0;

  const Arguments& all;
  long long tile, first, end_row, stride;
  long long outer = tile / tiles_across(all);
  long long column = (tile - outer * tiles_across(all)) * kColumns + threadIdx.x % kLanes * kElements;
  /// This thread's pack in the first row.
  const In* in = static_cast<const In*>(all.in) + (outer * all.reduced * all.in_pitch + column);
  Out* out = static_cast<Out*>(all.out) + (outer * all.reduced * all.out_pitch + column);
  long long end = column < all.inner ? end_row : first;

  static __device__ long long tiles_across(const Arguments& all) { return (all.inner + kColumns - 1) / kColumns; }
  static __device__ long long tiles_of(const Arguments& all) { return all.outer * tiles_across(all); }

  /// The first of a thread's rows, among those of a block.
  static __device__ unsigned row_lane() { return threadIdx.x / kLanes; }
  /// The place of the first of a thread's columns.
  static __device__ unsigned slot() { return threadIdx.x % kLanes * kElements; }

  __device__ long long after(long long row, unsigned k) const { return row + k * stride; }
  __device__ InPack load(long long row) const { return *reinterpret_cast<const InPack*>(in + row * all.in_pitch); }
  __device__ InPack load_again(long long row) const { return load(row); }
  __device__ void store(long long row, const OutPack& pack) const {
    store_streaming(reinterpret_cast<OutPack*>(out + row * all.out_pitch), pack);
  }

  /// Columns have no elements outside of packs.
  __device__ Single load_single() const { return {}; }
  __device__ Sums start(const Scale& scale, const Single&) const { return Sums(scale); }
  __device__ void add_singles(Sums&, const Scale&, const Single&) const {}
  __device__ void write_singles(const SoftmaxResults<Types>&, const Single&) const {}
};

/// A thread's rows are a multiple of kElements rows apart, and so are those of the threads of a warp: all their packs
/// have the same alignment. The outermost packs of a tile reach into the tiles beside it, into gaps or into other rows.
/// Elements that they load there, which others may be writing, go into States that nobody uses. A tile is one pack
/// narrower than its lanes together. A pack that would reach outside of the array is loaded by single elements: at most
/// those of a thread's first and last row. Torn packs of results are stored in parts.
template <class Types, unsigned kBlockThreads, unsigned kLanes>
struct PhaseMatchedColumnTile {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  using Sums = SoftmaxSums<Types>;
  using Single = SoftmaxSingle<In>;
  using Scale = typename Types::Scale;
  using Arguments = SoftmaxColumnsArguments<typename Types::Acc>;
  static constexpr unsigned kElements = Types::kElements;
  static constexpr unsigned kColumns = (kLanes - 1) * kElements;
  static constexpr unsigned kSlots = (kLanes + 1) * kElements, kFirstSlot = kElements;
  static constexpr unsigned kWarps = kBlockThreads / kWarpThreads;
  static_assert(kElements > 1 && kLanes > 1 && kWarps % kElements == 0);

  const Arguments& all;
  long long first, end, stride;
  const In* in;  ///< where the thread's packs are, less the rows before them
  Out* out;
  int column;            ///< the first of the pack, relative to the tile
  unsigned own = 0;      ///< bit e: column e of the pack belongs to the tile
  unsigned parts = 0;    ///< bit first_bit(w) + i: results of the i-th w elements of a pack are stored by one access
  unsigned singles = 0;  ///< bit 0: the row before `first` is loaded by single elements; bit 1: the row `end`

  __device__ PhaseMatchedColumnTile(const Arguments& all_, long long tile, long long first_row, long long end_row,
                                    long long stride_)
      : all(all_), first(first_row), end(first_row), stride(stride_) {
    const long long across = tiles_across(all), outer = tile / across, begin = (tile - outer * across) * kColumns;
    in = static_cast<const In*>(all.in) + (outer * all.reduced * all.in_pitch + begin);
    out = static_cast<Out*>(all.out) + (outer * all.reduced * all.out_pitch + begin);
    column = static_cast<int>(threadIdx.x % kLanes * kElements) -
             static_cast<int>(elements_behind_alignment<sizeof(InPack)>(in + first * all.in_pitch));
    in += column;
    out += column;
    const long long width = all.inner - begin < kColumns ? all.inner - begin : kColumns;
    const auto left = static_cast<int>(width) - column;
    if (left > 0) own = (1u << (left < static_cast<int>(kElements) ? left : kElements)) - 1;
    if (column < 0) own = own >> -column << -column;
    const bool in_step = elements_behind_alignment<sizeof(OutPack)>(out + first * all.out_pitch) == 0;
    add_parts<kElements>(own, in_step);
    if (own == 0 || first >= end_row) return;
    end = end_row;
    if (reaches_outside(first)) {
      singles = 1;
      first += stride;
    }
    if (first >= end) return;
    const long long last = first + (end - 1 - first) / stride * stride;
    if (reaches_outside(last)) {
      singles |= 2;
      end = last;
    }
  }

  static __device__ long long tiles_across(const Arguments& all) { return (all.inner + kColumns - 1) / kColumns; }
  static __device__ long long tiles_of(const Arguments& all) { return all.outer * tiles_across(all); }

  static __device__ unsigned row_lane() {
    if constexpr (kLanes >= kWarpThreads) return threadIdx.x / kLanes;
    else return threadIdx.x / kWarpThreads + threadIdx.x % kWarpThreads / kLanes * kWarps;
  }
  __device__ unsigned slot() const { return kFirstSlot + static_cast<unsigned>(column); }

  __device__ long long after(long long row, unsigned k) const { return row + k * stride; }
  __device__ InPack load(long long row) const {
    return load_beside_writers(reinterpret_cast<const InPack*>(in + row * all.in_pitch));
  }
  __device__ InPack load_again(long long row) const { return load(row); }
  __device__ void store(long long row, const OutPack& pack) const {
    Out* const to = out + row * all.out_pitch;
    if (parts >> first_bit(kElements)) store_streaming(reinterpret_cast<OutPack*>(to), pack);
    else store_parts<kElements / 2>(to, pack);
  }

  /// Elements that are no pack are loaded again each time.
  __device__ Single load_single() const { return {}; }
  __device__ Sums start(const Scale& scale, const Single&) const { return Sums(scale); }
  __device__ void add_singles(Sums& sums, const Scale& scale, const Single&) const {
    for_rows_of_singles([&](long long row) {
      InPack pack[1] = {load_own(row, Types::neutral_pack(scale))};
      sums.template add<false>(pack, scale);
    });
  }
  __device__ void write_singles(const SoftmaxResults<Types>& results, const Single&) const {
    for_rows_of_singles([&](long long row) { store(row, results(load_own(row, InPack::filled(In())))); });
  }

 private:
  __device__ bool reaches_outside(long long row) const {
    const In* const array = static_cast<const In*>(all.in);
    const In* const pack = in + row * all.in_pitch;
    return pack < array || pack + kElements > array + ((all.outer * all.reduced - 1) * all.in_pitch + all.inner);
  }

  __device__ void for_rows_of_singles(const auto& act) const {
#pragma unroll 1
    for (unsigned i = 0; i < 2; ++i)
      if (singles >> i & 1) act(i == 0 ? first - stride : end);
  }

  /// The pack of a row with the thread's own elements, and others instead of those that it has not.
  __device__ InPack load_own(long long row, InPack pack) const {
    const In* const from = in + row * all.in_pitch;
    unrolled<kElements>([&](unsigned e) {
      if (own >> e & 1) pack.set(e, from[e]);
    });
    return pack;
  }

  static __device__ constexpr unsigned first_bit(unsigned width) { return 2 * kElements - 2 * kElements / width; }

  /// Divides elements among accesses as wide as their alignment lets: of kWidth elements and fewer; of one each where
  /// the output is not aligned as the input.
  template <unsigned kWidth>
  __device__ void add_parts(unsigned elements, bool in_step) {
    constexpr unsigned kAll = (1u << kWidth) - 1;
    unrolled<kElements / kWidth>([&](unsigned i) {
      if ((kWidth > 1 && !in_step) || (elements >> i * kWidth & kAll) != kAll) return;
      parts |= 1u << (first_bit(kWidth) + i);
      elements &= ~(kAll << i * kWidth);
    });
    if constexpr (kWidth > 1) add_parts<kWidth / 2>(elements, in_step);
  }

  template <unsigned kWidth>
  __device__ void store_parts(Out* to, const OutPack& pack) const {
    unrolled<kElements / kWidth>([&](unsigned i) {
      if (parts >> (first_bit(kWidth) + i) & 1)
        *reinterpret_cast<Pack<Out, kWidth>*>(to + i * kWidth) =
            Pack<Out, kWidth>::of([&](unsigned e) { return pack[i * kWidth + e]; });
    });
    if constexpr (kWidth > 1) store_parts<kWidth / 2>(to, pack);
  }
};

template <class Types, unsigned kBlockThreads, unsigned kLanes>
using SoftmaxColumnTile =
    typename Select<Types::kPhaseMatched, PhaseMatchedColumnTile<Types, kBlockThreads, kLanes>,
                    AlignedColumnTile<Types, kBlockThreads, kLanes>>::type;

}  // namespace hone
