// Reduces rows that are too short or too misaligned for packs of their own to one value each, in the canonical tree.
//
// A block copies a contiguous run of rows to shared memory (StagedRun), all.parts of them; rows with gaps are copied
// element by element. Groups of kLanes lanes take turns at the words of a row (row_words.cuh).
//
// Constraints: a row has at least kLanes · kLeast elements and at most kLanes · kEach, and is at most a chunk; the rows
// of a tile have at most kTileElements elements.
#pragma once

#include "canonical_logsumexp.cuh"
#include "canonical_moments.cuh"
#include "grid.cuh"
#include "row_results.cuh"
#include "row_words.cuh"
#include "staged_run.cuh"

namespace hone {

template <class Op, unsigned kBlockThreads, unsigned kLanes, unsigned kUnroll, unsigned kLeast, unsigned kEach,
          class Out, unsigned kValues>
struct CanonicalRowTiles {
  using In = typename Op::In;
  using State = typename Op::State;
  using Run = StagedRun<In, kBlockThreads, kUnroll>;
  static constexpr unsigned kTileElements = Run::kMaxElements;
  static_assert(kLanes <= kWarpThreads);

  static __device__ void reduce(const RowsArguments& all) {
    __shared__ typename Run::ElementPack tile[kBlockThreads * kUnroll + 1];
    pdl_release_then_wait();
    const auto columns = static_cast<unsigned>(all.columns);
    const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * all.parts;
    Results results(all);
    for (auto first = static_cast<unsigned long long>(blockIdx.x) * all.parts; first < all.rows; first += stride) {
      const unsigned count = at_most(all.rows - first, all.parts);
      const In* const in = static_cast<const In*>(all.in) + first * all.pitch;
      if (all.pitch == columns) Run::copy(tile, in, count * columns);
      else copy_elements(Run::place(tile, in), in, all.pitch, count, columns);
      wait_for_copies();
      __syncthreads();
      RowWordCounts<In, kLanes, kLeast, kEach>::choose(columns,
                                                       Work{results, Run::place(tile, in), first, count, columns});
      __syncthreads();
    }
    results.flush();
  }

 private:
  using Results = RowResults<Op, Out, kValues, kLanes>;
  static constexpr unsigned kGroups = kBlockThreads / kLanes;

  static __device__ void copy_elements(In* to, const In* from, unsigned long long pitch, unsigned rows,
                                       unsigned columns) {
    for (unsigned row = threadIdx.x / kLanes; row < rows; row += kGroups)
      for (unsigned j = threadIdx.x % kLanes; j < columns; j += kLanes) to[row * columns + j] = from[row * pitch + j];
  }

  /// The rows of a tile.
  struct Work {
    Results& results;
    const In* tile;
    unsigned long long first;
    unsigned count, columns;

    /// All lanes of a warp have a row each time: those behind the last one the first, whose result they do not write.
    template <class Words>
    __device__ void with() const {
      for (unsigned begin = 0; begin < count; begin += kGroups) {
        const unsigned number = begin + threadIdx.x / kLanes;
        const In* const elements = tile + (number < count ? number * columns : 0);
        Words row;
        row.load(elements, columns, In{});
        results.add(reduced(row, elements, columns), first + number, number < count);
      }
    }

    template <class Words>
    static __device__ State reduced(const Words& row, const In* elements, unsigned columns) {
      constexpr unsigned kWords = Words::kCount, kWord = Words::kWord;
      if constexpr (kIsByChunk<Op>) {
        return chunk_of_lanes<Op, kWords, kWord, kLanes>(
            [&](unsigned k, unsigned e) { return Op::present(Op::prepared(row.words[k])[e], row.has(k, e)); },
            [&](unsigned k, unsigned e) { return row.begin(k) + e - row.before; }, [&] { return elements[0]; },
            columns);
      } else {
        State values[kWord];
        unrolled<kWord>([&](unsigned e) {
          values[e] = fold_leaves<Op, kWords>([&](unsigned k) {
            return row.has(k, e) ? Op::leaf(Op::prepared(row.words[k])[e]) : Op::absent();
          });
        });
        return fold_lanes<Op, kWord, 1, kLanes>(values);
      }
    }
  };
};

}  // namespace hone
