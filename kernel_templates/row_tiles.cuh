// Tiles of rows that are too short or too misaligned for vectorized loads of their own: a block copies a contiguous run
// of rows through shared memory (StagedRun), and groups of kGroup lanes compute there. Rows that are not contiguous are
// copied element by element. While a run is written, the next one is being loaded; with two areas for runs in, while it
// is computed, too.
//
// Constraints: a row has at least kGroup · kLeast elements and at most kGroup · kEach. Dynamic shared memory holds
// kInAreas runs of kTileRows rows in and one out, each with 16 bytes more for its alignment.
#pragma once

#include "dynamic_smem.cuh"
#include "grid.cuh"
#include "staged_run.cuh"

namespace hone {

/// Neighbouring rows that one thread computes in registers: as many as fill whole words, so that it reads and writes
/// words of shared memory: without bank conflicts if their number is odd.
template <class In, class Out, class Acc, unsigned kColumns>
struct ThreadRows {
  static constexpr unsigned kRows = kColumns % 2 != 0 && (sizeof(In) < 4 || sizeof(Out) < 4) ? 2 : 1;
  static constexpr unsigned kElements = kRows * kColumns;

  Acc values[kElements];

  /// The first `count` elements are there.
  __device__ void load(const In* from, unsigned count) {
    using Part = Pack<In, sizeof(In) < 4 ? 2 : 1>;
    if (count >= kElements && elements_behind_alignment<sizeof(Part)>(from) == 0) {
      unrolled<kElements / Part::kElements>([&](unsigned p) {
        const Part part = reinterpret_cast<const Part*>(from)[p];
        unrolled<Part::kElements>([&](unsigned e) { values[p * Part::kElements + e] = convert<Acc>(part[e]); });
      });
    } else {
      unrolled<kElements>([&](unsigned e) { values[e] = e < count ? convert<Acc>(from[e]) : Acc(0); });
    }
  }

  /// convert<Out>() of each, but where_special(value) if some are special.
  __device__ void store(Out* to, unsigned count, bool are_special, const auto& where_special) const {
    using Part = Pack<Out, sizeof(Out) < 4 ? 2 : 1>;
    if (!are_special && count >= kElements && elements_behind_alignment<sizeof(Part)>(to) == 0) {
      unrolled<kElements / Part::kElements>([&](unsigned p) {
        reinterpret_cast<Part*>(to)[p] =
            Part::of([&](unsigned e) { return convert<Out>(values[p * Part::kElements + e]); });
      });
    } else {
      unrolled<kElements>([&](unsigned e) {
        if (e < count) to[e] = where_special(values[e]);
      });
    }
  }
};

template <class In_, class Out_, class Index_, unsigned kBlockThreads, unsigned kGroup, unsigned kLeast, unsigned kEach,
          unsigned kRows, unsigned kInAreas = 1>
struct RowTiles {
  using In = In_;
  using Out = Out_;
  using Index = Index_;
  using InRun = StagedRun<In, kBlockThreads, (kRows * kEach * sizeof(In) + 15) / 16>;
  using OutRun = StagedRun<Out, kBlockThreads, (kRows * kEach * sizeof(Out) + 15) / 16>;
  static constexpr unsigned kGroups = kBlockThreads / kGroup;
  static constexpr unsigned kTileRows = kGroups * kRows;
  static_assert(kInAreas == 1 || kInAreas == 2);

  /// A thread has rows to itself, so short that there is code for each number of columns (ThreadRows).
  static constexpr bool kUnrollsRows = kGroup == 1 && kEach <= 12;

  /// The matrices of a call; pitches are in elements.
  struct Matrices {
    const In* in;
    Out* out;
    Index rows;
    unsigned columns;
    long long in_pitch, out_pitch;

    __device__ const In* in_row(Index r) const { return in + static_cast<long long>(r) * in_pitch; }
    __device__ Out* out_row(Index r) const { return out + static_cast<long long>(r) * out_pitch; }
  };

  /// Starts to load the first tile of a block, if there is one, after pdl_release_then_wait().
  static __device__ void start(const Matrices& all) {
    pdl_release_then_wait();
    if (first_row() < all.rows) load(all, first_row(), 0);
  }

  /// Calls compute(in, out, rows) for each tile of a block, after start(): its rows in shared memory, side by side.
  static __device__ void for_each_tile(const Matrices& all, const auto& compute) {
    auto* const out_area = reinterpret_cast<typename OutRun::ElementPack*>(in_area(all, kInAreas));
    const Index stride = static_cast<Index>(gridDim.x) * kTileRows;
    unsigned area = 0;
    for (Index first = first_row(); first < all.rows; first += stride, area = kInAreas - 1 - area) {
      const auto load_next = [&] {
        if (first + stride < all.rows) load(all, first + stride, kInAreas - 1 - area);
      };
      wait_for_copies();
      __syncthreads();
      if (kInAreas > 1) load_next();
      Out* const out = OutRun::place(out_area, all.out_row(first));
      compute(InRun::place(in_area(all, area), all.in_row(first)), out, at_most(all.rows - first, kTileRows));
      __syncthreads();
      if (kInAreas == 1) load_next();
      store(all, first, out);
    }
  }

  /// Calls act(offset, is_own) for each of a group's rows in a tile. All lanes of a warp call it; lanes without a row
  /// compute the first one and write nothing.
  static __device__ void for_group_rows(unsigned columns, unsigned rows, const auto& act) {
#pragma unroll 1
    for (unsigned first = 0; first < kTileRows; first += kGroups) {
      const unsigned row = first + threadIdx.x / kGroup;
      const bool is_own = row < rows;
      act(is_own ? row * columns : 0, is_own);
    }
  }

  /// Calls act(k) for each k such that some lane of the group has a k-th element. Recursive: every k is a constant.
  template <unsigned k = 0, class Act>
  static __device__ void for_elements(unsigned columns, const Act& act) {
    if constexpr (k < kEach) {
      if (k >= kLeast && k * kGroup >= columns) return;
      act(k);
      for_elements<k + 1>(columns, act);
    }
  }
  static __device__ bool is_there(unsigned k, unsigned columns) {
    return k < kLeast || threadIdx.x % kGroup + k * kGroup < columns;
  }

  /// Work for for_thread_rows() that is work.row<kColumns>(values) for each row; all results are converted.
  template <class Work>
  struct EachRow {
    Work work;

    template <unsigned kColumns, unsigned kRunRows, class Acc>
    __device__ bool rows(Acc* values) const {
      unrolled<kRunRows>([&](unsigned r) { work.template row<kColumns>(values + r * kColumns); });
      return false;
    }
    template <class Acc>
    static __device__ Out result(Acc value) { return convert<Out>(value); }
  };

  /// If kUnrollsRows, calls work.rows<kColumns, kRows>(values) for each run of ThreadRows of a thread; Acc is that of
  /// their values, which become results: work.result(value) is stored, which is convert<Out>(value) if rows() was false.
  /// Recursive: code for each number of columns.
  template <class Acc, unsigned kColumns = kLeast == 0 ? 1 : kLeast, class Work>
  static __device__ void for_thread_rows(const Work& work, const In* in, Out* out, unsigned rows, unsigned columns) {
    if constexpr (kColumns < kEach)
      if (columns != kColumns) return for_thread_rows<Acc, kColumns + 1>(work, in, out, rows, columns);
    using Run = ThreadRows<In, Out, Acc, kColumns>;
    const unsigned elements = rows * columns;
#pragma unroll 1
    for (unsigned first = threadIdx.x * Run::kElements; first < elements; first += kBlockThreads * Run::kElements) {
      Run run;
      run.load(in + first, elements - first);
      const bool are_special = work.template rows<kColumns, Run::kRows>(run.values);
      run.store(out + first, elements - first, are_special, [&](Acc value) { return work.result(value); });
    }
  }

 private:
  static __device__ Index first_row() { return static_cast<Index>(blockIdx.x) * kTileRows; }

  /// Where a run is loaded, in turn.
  static __device__ auto in_area(const Matrices& all, unsigned area) {
    const unsigned bytes = (kTileRows * all.columns * sizeof(In) + 15) / 16 * 16 + 16;
    return reinterpret_cast<typename InRun::ElementPack*>(dynamic_smem + area * bytes);
  }

  /// Copies rows element by element, unless they are contiguous on both sides.
  template <class T>
  static __device__ bool copied_elements(T* to, long long to_pitch, const T* from, long long from_pitch, unsigned rows,
                                         unsigned columns) {
    if (to_pitch == from_pitch) return false;
    for (unsigned row = threadIdx.x / kGroup; row < rows; row += kGroups)
      for (unsigned j = threadIdx.x % kGroup; j < columns; j += kGroup)
        to[row * to_pitch + j] = from[row * from_pitch + j];
    return true;
  }

  static __device__ void load(const Matrices& all, Index first, unsigned area) {
    const unsigned rows = at_most(all.rows - first, kTileRows);
    const In* const in = all.in_row(first);
    auto* const to = in_area(all, area);
    if (!copied_elements(InRun::place(to, in), all.columns, in, all.in_pitch, rows, all.columns))
      InRun::copy(to, in, rows * all.columns);
  }

  static __device__ void store(const Matrices& all, Index first, const Out* staged) {
    const unsigned rows = at_most(all.rows - first, kTileRows);
    if (!copied_elements(all.out_row(first), all.out_pitch, staged, all.columns, rows, all.columns))
      OutRun::store(all.out_row(first), staged, rows * all.columns);
  }
};

}  // namespace hone
