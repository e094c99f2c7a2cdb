// Rows for canonical_softmax.cuh that are too short or too misaligned for packs of their own, in tiles (row_tiles.cuh).
// The lanes of a group take turns at the words of a row (row_words.cuh).
//
// Constraints: those of row_tiles.cuh; a row is at most a chunk.
#pragma once

#include "canonical_softmax_write.cuh"
#include "row_tiles.cuh"
#include "row_words.cuh"

namespace hone {

/// Where a Row in a tile is.
template <class Acc>
struct TilePlace {
  unsigned columns;
  Acc factor;
  bool is_own;  ///< else no results are wanted
};

/// A Row in a tile, of RowWords. MostWords are those of any row.
template <class Types_, unsigned kLanes, class Words, class MostWords>
struct TileRow {
  using Types = Types_;
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using Again = TileRow<Types, kLanes, MostWords, MostWords>;
  using Place = TilePlace<Acc>;
  static constexpr bool kIsApart = true;
  static constexpr unsigned kWords = Words::kCount, kWord = Words::kWord;

  Place place;
  Words row;
  Acc weights[kWords][kWord];  ///< if results are made of them

  template <class AnyPowers>
  __device__ void load(const In* in, const AnyPowers& powers) {
    row.load(in, place.columns, convert<In>(place.factor < Acc(0) ? highest<Acc>() : lowest<Acc>()));
    powers.turn(row.words);
  }

  template <class AnyPowers>
  __device__ Acc sum(const AnyPowers& powers) {
    Acc values[kWord];
    unrolled<kWords>([&](unsigned k) {
      unrolled<kWord>([&](unsigned e) {
        weights[k][e] = row.has(k, e) ? powers(convert<Acc>(row.words[k][e])) : Acc(0);  // as in HeldChunks
      });
    });
    unrolled<kWord>([&](unsigned e) {
      values[e] = fold_leaves<CanonicalSum<Acc>, kWords>([&](unsigned k) { return weights[k][e]; });
    });
    return fold_lanes<CanonicalSum<Acc>, kWord, 1, kLanes>(values);
  }
  __device__ Acc heaviest() const {
    return CanonicalCombine<HeaviestElement<Types>>::template in_all_lanes<kLanes>(largest_of<Acc>(row.words));
  }

  template <class Weight>
  __device__ void store(const In*, Out* out, const Weight& weight, const SoftmaxNorm<Acc>& norm) const {
    if (!place.is_own) return;
    const auto kept = [&](unsigned k, unsigned e) {
      return Types::kLog ? convert<Acc>(row.words[k][e]) : weights[k][e];
    };
    weight.write_results(*this, norm, kept, out);
  }

  /// Stores result(k, e) of the elements that are there: words, if the results are as aligned as the elements.
  __device__ void write(Out* out, const auto& result) const {
    using Word = Pack<Out, kWord>;
    const auto write_elements = [&](unsigned k) {
      unrolled<kWord>([&](unsigned e) {
        if (row.has(k, e)) (out - row.before)[row.begin(k) + e] = result(k, e);
      });
    };
    if (elements_behind_alignment<sizeof(Word)>(out) == row.before) {
      auto* const to = row.of_lane(reinterpret_cast<Word*>(out - row.before));
      unrolled<kWords>([&](unsigned k) {
        if (row.is_whole(k)) to[k * kLanes] = Word::of([&](unsigned e) { return result(k, e); });
        else write_elements(k);
      });
    } else {
      unrolled<kWords>(write_elements);
    }
  }
};

template <class Types, unsigned kBlockThreads, unsigned kLanes, unsigned kLeast, unsigned kEach, unsigned kRows,
          unsigned kInAreas>
struct CanonicalSoftmaxTiles {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using Arguments = typename Types::Arguments;
  using GuessedPowers = typename Types::GuessedPowers;
  using Tiles = RowTiles<In, Out, unsigned long long, kBlockThreads, kLanes, kLeast, kEach, kRows, kInAreas>;
  using Counts = RowWordCounts<In, kLanes, kLeast, kEach>;
  static_assert(kLanes <= kWarpThreads);

  static __device__ void run(const Arguments& all) {
    const GuessedPowers guessed{all.guessed, all.scale.factor};
    const auto columns = static_cast<unsigned>(all.columns);
    const typename Tiles::Matrices rows{softmax_input<Types>(all, 0), softmax_output<Types>(all, 0), all.rows, columns,
                                        all.in_pitch, all.out_pitch};
    CombineRow combine;
    Tiles::start(rows);
    Tiles::for_each_tile(rows, [&](const In* in, Out* out, unsigned count) {
      if constexpr (Tiles::kUnrollsRows)
        Tiles::template for_thread_rows<Acc>(ThreadWork{guessed}, in, out, count, columns);
      else
        Counts::choose(columns, GroupWork{in, out, count, columns, combine, guessed});
    });
  }

 private:
  using CombineRow = CombineSoftmax<Types, kLanes, 1, Exchange::barriers>;

  /// The rows of a tile, by groups.
  struct GroupWork {
    const In* in;
    Out* out;
    unsigned count, columns;
    CombineRow& combine;
    const GuessedPowers& guessed;

    template <class Words>
    __device__ void with() const {
      Tiles::for_group_rows(columns, count, [&](unsigned at, bool is_own) {
        TileRow<Types, kLanes, Words, typename Counts::Most> row{{columns, guessed.factor, is_own}};
        row.load(in + at, guessed);
        write_row(row, in + at, out + at, combine, guessed);
      });
    }
  };

  /// The rows of a thread.
  struct ThreadWork {
    GuessedPowers guessed;

    static __device__ Out result(Acc value) { return is_nan(value) ? canonical_nan<Out>() : convert<Out>(value); }

    /// Replaces the elements of rows by their results; true if some may be NaNs. All rows have the same powers at once,
    /// so that nothing waits, or each its own.
    template <unsigned kColumns, unsigned kRows_>
    __device__ bool rows(Acc* values) const {
      Pack<Acc, 1> elements[kRows_ * kColumns];
      unrolled<kRows_ * kColumns>([&](unsigned k) { elements[k].parts[0] = values[k]; });
      guessed.turn(elements);
      Acc heaviest[kRows_];
      bool are_guessed = true;
      unrolled<kRows_>([&](unsigned r) {
        heaviest[r] = fold_leaves<HeaviestElement<Types>, kColumns>(
            [&](unsigned k) { return elements[r * kColumns + k][0]; });
        are_guessed = are_guessed && guessed.are_of(heaviest[r]);
      });
      if (are_guessed) {
        unrolled<kRows_>([&](unsigned r) {
          replace<kColumns>(values + r * kColumns, SoftmaxWeight<Types, GuessedPowers>(guessed, heaviest[r]),
                            [&](unsigned k) { return elements[r * kColumns + k][0]; });
        });
      } else {
        unrolled<kRows_>([&](unsigned r) {
          replace<kColumns>(values + r * kColumns, SoftmaxWeight<Types>(heaviest[r], guessed.factor),
                            [&](unsigned k) { return values[r * kColumns + k]; });
        });
      }
      return !are_guessed;
    }

   private:
    template <unsigned kColumns, class Weight>
    static __device__ void replace(Acc* values, const Weight& weight, const auto& element) {
      Acc weights[kColumns];
      unrolled<kColumns>([&](unsigned k) { weights[k] = weight.weight(element(k)); });
      const auto norm = weight.template norm<true>(
          fold_leaves<CanonicalSum<Acc>, kColumns>([&](unsigned k) { return weights[k]; }));
      unrolled<kColumns>([&](unsigned k) {
        const Acc result = weight.wide_of_kept(Types::kLog ? element(k) : weights[k], norm);
        values[k] = weight.is_nan ? canonical_nan<Acc>() : result;
      });
    }
  };
};

}  // namespace hone
