// Reduces each short row of a matrix to one value in the canonical tree.
//
// kLanes neighbouring lanes share a row of at most kLanes · kUnroll packs, and at most a chunk. A thread loads its packs
// of kRows rows before it combines any. A fold in halves is the same from any power of two on that is not below the
// length of the row, and if residues are rotated: so a lane has aligned packs of rows that begin anywhere.
//
// Constraints: kBlockThreads is a power of two, a multiple of a warp; if kIsAligned, rows begin at multiples of kPack
// elements.
#pragma once

#include "canonical_logsumexp.cuh"
#include "canonical_moments.cuh"
#include "grid.cuh"
#include "pack_range.cuh"
#include "row_results.cuh"

namespace hone {

template <class Op, unsigned kBlockThreads, unsigned kLanes, unsigned kUnroll, unsigned kRows, unsigned kPack,
          bool kIsAligned, class Out, unsigned kValues>
struct CanonicalRowLanes {
  using In = typename Op::In;
  using State = typename Op::State;
  using ElementPack = Pack<In, kPack>;
  static constexpr unsigned kGroups = kBlockThreads / kLanes;
  static constexpr unsigned kTileRows = kGroups * kRows;
  static constexpr unsigned kMostColumns = kLanes * kUnroll * kPack;
  static_assert(kLanes <= kWarpThreads && kMostColumns <= kChunkElements<In>);
  static_assert(kIsAligned || (!kIsByChunk<Op> && sizeof(ElementPack) == 16));

  static __device__ void reduce(const RowsArguments& all) {
    pdl_release_then_wait();
    const unsigned long long rows = all.rows, tile_rows = kTileRows;
    const auto columns = static_cast<unsigned>(all.columns);
    RowResults<Op, Out, kValues, kLanes> results(all);
    for (auto tile = blockIdx.x * tile_rows; tile < rows; tile += gridDim.x * tile_rows) {
      const unsigned long long first = tile + threadIdx.x / kLanes;
      Row row[kRows];
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r)
        row[r].load(static_cast<const In*>(all.in) + (first + r * kGroups) * all.pitch,
                    first + r * kGroups < rows ? columns : 0);
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        const auto number = first + r * kGroups;
        results.add(row[r].reduced(columns), number, number < rows);
      }
    }
    results.flush();
  }

 private:
  /// A lane's packs of a row. Those of an unaligned row are aligned: the first has `before` elements of other rows, in
  /// whose place are those behind kMostColumns − before, if there are any.
  struct Row {
    ElementPack packs[kUnroll];
    unsigned before;

    static __device__ unsigned place(unsigned u) { return (u * kLanes + threadIdx.x % kLanes) * kPack; }

    /// The number of element e of the lane's pack u.
    __device__ unsigned number(unsigned u, unsigned e) const {
      return kIsAligned ? place(u) + e : (place(u) + e - before) % kMostColumns;
    }

    /// Loads nothing beyond the row; what is not there is anything.
    __device__ void load(const In* row, unsigned columns) {
      before = kIsAligned ? 0 : elements_behind_alignment<sizeof(ElementPack)>(row);
      const In* const line = row - before;
      const unsigned behind = before + columns, whole = behind / kPack * kPack;
      ElementPack last = ElementPack::filled(In{});
      if (kPack > 1 && whole < behind && whole / kPack % kLanes == threadIdx.x % kLanes) {
#pragma unroll
        for (unsigned e = 0; e < kPack; ++e)
          if (whole + e < behind && whole + e >= before) last.set(e, line[whole + e]);
      }
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u)
        packs[u] = place(u) >= before && place(u) < whole ? *reinterpret_cast<const ElementPack*>(line + place(u)) : last;
      if (kIsAligned || before == 0 || threadIdx.x % kLanes != 0) return;
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e)
        if (number(0, e) < columns) packs[0].set(e, row[number(0, e)]);
    }

    __device__ State reduced(unsigned columns) const {
      if constexpr (kIsByChunk<Op>) {
        return chunk_of_packs<kUnroll>(columns);
      } else {
        State values[kPack];
        fold_packs<kUnroll>(values, columns);
        return fold_lanes<Op, kPack, 1, kLanes>(values);
      }
    }

    /// The State of the first kPacks packs, which have all of the row, or of half of them if these have it.
    template <unsigned kPacks>
    __device__ State chunk_of_packs(unsigned columns) const {
      constexpr unsigned kWhole = kPacks / 2;
      if constexpr (kPacks > 1) {
        if (columns <= kWhole * kLanes * kPack) return chunk_of_packs<kWhole>(columns);
      }
      decltype(Op::prepared(packs[0])) prepared[kPacks];
#pragma unroll
      for (unsigned u = 0; u < kPacks; ++u) prepared[u] = Op::prepared(packs[u]);
      return chunk_of_lanes<Op, kPacks, kPack, kLanes>(
          [&](unsigned u, unsigned e) { return Op::present(prepared[u][e], u < kWhole || number(u, e) < columns); },
          [&](unsigned u, unsigned e) { return number(u, e); },
          [&] {
            constexpr unsigned kOthers = ~(kLanes - 1);
            return shuffle_from(Op::present(prepared[0][0], true).value, threadIdx.x % kWarpThreads & kOthers);
          },
          columns);
    }

    /// Folds the first kPacks packs, which have all of the row, or half of them if these have it.
    template <unsigned kPacks>
    __device__ void fold_packs(State (&values)[kPack], unsigned columns) const {
      if constexpr (kPacks > 1) {
        if (columns + (kIsAligned ? 0 : kPack - 1) <= kPacks / 2 * kLanes * kPack) {
          fold_packs<kPacks / 2>(values, columns);
          return;
        }
      }
      State leaves[kPacks][kPack];
#pragma unroll
      for (unsigned u = 0; u < kPacks; ++u) {
        const auto prepared = Op::prepared(packs[u]);
        if ((kIsAligned || u > 0) && (u + 1) * kLanes * kPack <= columns) {  // all of it is there, in all lanes
#pragma unroll
          for (unsigned e = 0; e < kPack; ++e) leaves[u][e] = Op::leaf(prepared[e]);
        } else {
#pragma unroll
          for (unsigned e = 0; e < kPack; ++e)
            leaves[u][e] = number(u, e) < columns ? Op::leaf(prepared[e]) : Op::absent();
        }
      }
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e)
        values[e] = fold_leaves<Op, kPacks>([&](unsigned u) { return leaves[u][e]; });
    }
  };
};

}  // namespace hone
