// Rows for canonical_softmax.cuh that are too short or too misaligned for packs of their own, in tiles (row_tiles.cuh).
//
// The kLanes lanes of a group take turns at the words of a row, which are aligned in shared memory. The elements of a
// row that begins within a word are turned by one: a tree of halves does not change when its leaves are turned.
//
// Constraints: those of row_tiles.cuh; a row is at most a chunk.
#pragma once

#include "canonical_softmax_write.cuh"
#include "row_tiles.cuh"

namespace hone {

/// Where a Row in a tile is.
template <class Acc>
struct TilePlace {
  unsigned columns;
  Acc factor;
  bool is_own;  ///< else no results are wanted
};

/// A Row in a tile, of words that elements fill, or that are elements. A lane has kWords of them, of which the first
/// kWholeWords are there, but for what is before the row. MostWords: a Row of as many words as any has.
template <class Types_, unsigned kLanes, unsigned kWords, unsigned kWholeWords, class MostWords>
struct TileRow {
  using Types = Types_;
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using Again = typename MostWords::Row;
  static constexpr bool kIsApart = true;
  static constexpr unsigned kWord = MostWords::kWord;  // elements
  using Place = TilePlace<Acc>;

  Place place;
  Pack<In, kWord> words[kWords];
  Acc weights[kWords][kWord];  ///< if results are made of them
  unsigned before;             ///< elements of the first word that are before the row

  template <class AnyPowers>
  __device__ void load(const In* in, const AnyPowers& powers) {
    before = elements_behind_alignment<sizeof(words[0])>(in);
    const In weightless = convert<In>(place.factor < Acc(0) ? highest<Acc>() : lowest<Acc>());
    const auto* const from = of_lane(reinterpret_cast<const Pack<In, kWord>*>(in - before));
    unrolled<kWords>([&](unsigned k) {
      words[k] = words[0].filled(weightless);
      if (is_there(k)) words[k] = from[k * kLanes];
      unrolled<kWord>([&](unsigned e) {
        if (is_outside(k, e)) words[k].set(e, weightless);
      });
    });
    powers.turn(words);
  }

  template <class AnyPowers>
  __device__ Acc sum(const AnyPowers& powers) {
    Acc values[kWord];
    unrolled<kWords>([&](unsigned k) {
      unrolled<kWord>([&](unsigned e) { weights[k][e] = powers(convert<Acc>(words[k][e])); });
    });
    unrolled<kWord>([&](unsigned e) {
      values[e] = fold_leaves<CanonicalSum<Acc>, kWords>([&](unsigned k) { return weights[k][e]; });
    });
    return fold_lanes<CanonicalSum<Acc>, kWord, 1, kLanes>(values);
  }
  __device__ Acc heaviest() const {
    return CanonicalCombine<HeaviestElement<Types>>::template in_all_lanes<kLanes>(largest_of<Acc>(words));
  }

  template <class Weight>
  __device__ void store(const In*, Out* out, const Weight& weight, const SoftmaxNorm<Acc>& norm) const {
    if (!place.is_own) return;
    const auto kept = [&](unsigned k, unsigned e) { return Types::kLog ? convert<Acc>(words[k][e]) : weights[k][e]; };
    weight.write_results(*this, norm, kept, out);
  }

  /// Stores result(k, e) of the elements that are there: words, if the results are as aligned as the elements.
  __device__ void write(Out* out, const auto& result) const {
    using Word = Pack<Out, kWord>;
    const auto write_elements = [&](unsigned k) {
      unrolled<kWord>([&](unsigned e) {
        if (is_there(k) && !is_outside(k, e)) (out - before)[begin(k) + e] = result(k, e);
      });
    };
    if (elements_behind_alignment<sizeof(Word)>(out) == before) {
      auto* const to = of_lane(reinterpret_cast<Word*>(out - before));
      unrolled<kWords>([&](unsigned k) {
        if (is_whole(k)) to[k * kLanes] = Word::of([&](unsigned e) { return result(k, e); });
        else write_elements(k);
      });
    } else {
      unrolled<kWords>(write_elements);
    }
  }

 private:
  template <class T>
  static __device__ T* of_lane(T* words) { return words + threadIdx.x % kLanes; }
  static __device__ unsigned begin(unsigned k) { return (threadIdx.x % kLanes + k * kLanes) * kWord; }
  /// How many elements there are from the first one of the lane's word k on.
  __device__ int left(unsigned k) const { return static_cast<int>(place.columns + before - begin(k)); }
  __device__ bool is_there(unsigned k) const { return k < kWholeWords || left(k) > 0; }
  /// True if word k is there, and that element of it is not the row's.
  __device__ bool is_outside(unsigned k, unsigned e) const {
    const bool is_behind = e > 0 && k >= kWholeWords && left(k) == static_cast<int>(e);
    return is_behind || (k == 0 && threadIdx.x % kLanes == 0 && e < before);
  }
  __device__ bool is_whole(unsigned k) const {
    return (k < kWholeWords || left(k) >= static_cast<int>(kWord)) &&
           (k > 0 || kWord == 1 || threadIdx.x % kLanes > 0 || before == 0);
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
  static_assert(kLanes <= kWarpThreads && sizeof(In) >= 2);

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
        write_rows(in, out, count, columns, combine, guessed);
    });
  }

 private:
  using CombineRow = CombineSoftmax<Types, kLanes, 1, Exchange::barriers>;
  struct MostWords {
    static constexpr unsigned kWord = sizeof(In) < 4 ? 2 : 1;
    static constexpr unsigned kLeastWords = kLeast == 0 ? 1 : (kLeast + kWord - 1) / kWord;
    static constexpr unsigned kWords = kEach / kWord + (kWord - 1);
    using Row = TileRow<Types, kLanes, kWords, kLeastWords - 1, MostWords>;
    /// There is code for each so many words, for at most four numbers.
    static constexpr unsigned kStep = (kWords - kLeastWords + 4) / 4;
  };

  /// Writes the results of a tile. Recursive: code for some numbers of words that a lane has of a row.
  template <unsigned kWords = MostWords::kLeastWords + MostWords::kStep - 1>
  static __device__ void write_rows(const In* in, Out* out, unsigned count, unsigned columns, CombineRow& combine,
                                    const GuessedPowers& guessed) {
    if constexpr (kWords < MostWords::kWords) {
      constexpr unsigned kWord = MostWords::kWord;
      if (columns + (kWord - 1) > kWords * kLanes * kWord)
        return write_rows<kWords + MostWords::kStep>(in, out, count, columns, combine, guessed);
    }
    Tiles::for_group_rows(columns, count, [&](unsigned at, bool is_own) {
      TileRow<Types, kLanes, kWords, kWords - MostWords::kStep, MostWords> row{{columns, guessed.factor, is_own}};
      row.load(in + at, guessed);
      write_row(row, in + at, out + at, combine, guessed);
    });
  }

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
