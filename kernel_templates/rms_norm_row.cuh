// RmsNormRow: a row of the arrays of an RMS normalisation, as the packs and single elements of one of its threads.
#pragma once

#include "pack_across.cuh"
#include "pack_range.cuh"
#include "rms_norm_arguments.h"

namespace hone {

/// The array whose packs are aligned in rows that begin anywhere.
enum class AlignedIn { x, y };

/// A row for one of kThreads threads: packs thread, thread + kThreads, … < end. Without kAnyStart all rows of all
/// arrays are whole numbers of aligned packs. With it rows may begin at any element, and packs that are aligned in one
/// array may not be in another: there they are read by shifted loads and stored element by element. Shifted loads reach
/// into the packs beside them, and so the first and the last pack of such a row are single elements, too.
template <class T, class Index_, unsigned kElements, bool kAnyStart, bool kHasWeight, bool kHasResidual,
          unsigned kThreads, AlignedIn kAlignedIn>
struct RmsNormRow {
  using Index = Index_;
  using ElementPack = Pack<T, kElements>;
  using Range = PackRange<OneArray<T, kElements>, Index>;
  static constexpr unsigned kMostSingles = 4 * kElements;  ///< less two

  /// A row of an array.
  struct Line {
    T* elements;
    unsigned shift = 0;  ///< from the last aligned address to a pack, in elements

    __device__ Line(const void* array, unsigned long long r, long long pitch)
        : elements(const_cast<T*>(static_cast<const T*>(array)) + static_cast<long long>(r) * pitch) {}
  };

  const RmsNormArguments& all;
  unsigned long long r;
  unsigned thread;
  Line x{all.x, r, all.in_pitch}, residual{all.residual, r, all.in_pitch}, weight{all.weight, 0, 0};
  Line y{all.y, r, all.out_pitch}, h{all.h, r, all.out_pitch};
  Range range = Range::template of<kAnyStart>({(kAlignedIn == AlignedIn::x ? x : y).elements},
                                              r < all.rows ? static_cast<Index>(all.columns) : 0);
  Index end = range.packs;

  /// Row r of all arrays; behind the last row, an empty one.
  __device__ RmsNormRow(const RmsNormArguments& arguments, unsigned long long row, unsigned rank)
      : all(arguments), r(row), thread(rank) {
    if constexpr (kAnyStart) {
      bool is_shifted = shift(x) | shift(y);
      if constexpr (kHasWeight) is_shifted |= shift(weight);
      if constexpr (kHasResidual) is_shifted |= shift(residual) | shift(h);
      if (is_shifted) {
        range.head += kElements;
        range.packs = range.packs < 2 ? 0 : range.packs - 2;
      }
      end = range.packs;
    }
  }

  /// The first pack of an array, and its first element.
  __device__ ElementPack* packs(const Line& of) const { return reinterpret_cast<ElementPack*>(elements(of)); }
  __device__ T* elements(const Line& of) const { return kAnyStart ? of.elements + range.head : of.elements; }

  /// The single element of the thread, where there are at least kMostSingles threads.
  __device__ bool has_single() const {
    static_assert(!kAnyStart || kThreads >= kMostSingles);
    return kAnyStart && thread < range.singles();
  }
  __device__ Index single() const { return range.single(thread); }

  /// Loads packs p, p + kThreads, … of an array; behind the last one, zeros. Shifted loads take two registers a word:
  /// kMostAtOnce packs of them are in flight at once.
  template <bool kForTheLastTime = false, unsigned kMostAtOnce = 1u << 31, unsigned kTile>
  __device__ void load(ElementPack (&tile)[kTile], const Line& from, Index p) const {
    const T zero = convert<T>(0.0f);
    if (!kAnyStart || from.shift == 0) {
      unrolled<kTile>([&](unsigned u) {
        const ElementPack* const pack = packs(from) + (p + u * kThreads);
        tile[u] = ElementPack::filled(zero);
        if (p + u * kThreads < end) tile[u] = kForTheLastTime ? load_streaming(pack) : *pack;
      });
    } else if constexpr (kAnyStart) {
      constexpr unsigned kAtOnce = kTile % kMostAtOnce == 0 ? kMostAtOnce : kTile;
      const ElementPack* const first = reinterpret_cast<const ElementPack*>(elements(from) - from.shift) + p;
      const auto load_part = [&](unsigned part) {
        unrolled<kAtOnce>([&](unsigned i) {
          const unsigned u = part * kAtOnce + i;
          auto pack = PackAcross<T, kElements>::filled(zero);
          if (p + u * kThreads < end) pack = {first[u * kThreads], first[u * kThreads + 1]};
          tile[u] = pack.after(from.shift);
        });
      };
      load_part(0);
      unrolled<kTile / kAtOnce - 1>([&](unsigned previous) {
        const unsigned part = previous + 1;
        unrolled<kAtOnce>([&](unsigned i) { tile[part * kAtOnce + i] = ElementPack::filled(zero); });
        if (p + part * kAtOnce * kThreads < end) load_part(part);
      });
    }
  }

  /// Stores pack_of(u), u < kTile, as packs p, p + kThreads, … of an array, each as soon as it is computed. kIsLast:
  /// this kernel does not read them.
  template <unsigned kTile, bool kIsLast = false>
  __device__ void store(const Line& to, Index p, const auto& pack_of) const {
    if (kAnyStart && to.shift != 0) {
      T* const at = elements(to) + p * kElements;
      unrolled<kTile>([&](unsigned u) {
        const ElementPack pack = pack_of(u);
        if (p + u * kThreads >= end) return;
        unrolled<kElements>([&](unsigned e) { at[u * kThreads * kElements + e] = pack[e]; });
      });
    } else {
      ElementPack* const at = packs(to) + p;
      unrolled<kTile>([&](unsigned u) {
        const ElementPack pack = pack_of(u);
        if (p + u * kThreads >= end) return;
        if constexpr (kIsLast) store_streaming(at + u * kThreads, pack);
        else at[u * kThreads] = pack;
      });
    }
  }

 private:
  __device__ bool shift(Line& line) const {
    line.shift = elements_behind_alignment<sizeof(ElementPack)>(elements(line));
    return line.shift != 0;
  }
};

}  // namespace hone
