// RowWords: a short row in shared memory, of whose words kLanes lanes have one each in turn.
//
// A word is one element, or two of 16 bits. The elements of a row that begins within a word are turned by one: a tree of
// halves (canonical_tree.cuh) does not change when its leaves are turned.
#pragma once

#include "pack_range.cuh"

namespace hone {

template <class In>
inline constexpr unsigned kWordElements = sizeof(In) < 4 ? 2 : 1;

/// The words k < kWords of a lane. The first kWholeWords are there, but for what is before the row.
template <class In, unsigned kLanes, unsigned kWords, unsigned kWholeWords>
struct RowWords {
  static constexpr unsigned kCount = kWords, kWord = kWordElements<In>;
  static_assert(sizeof(In) >= 2);

  Pack<In, kWord> words[kWords];
  unsigned columns;
  unsigned before;  ///< elements of the first word that are before the row

  /// Loads a row that begins at `in`; `absent` is in place of what is outside of it.
  __device__ void load(const In* in, unsigned columns_, In absent) {
    columns = columns_;
    before = elements_behind_alignment<sizeof(words[0])>(in);
    const auto* const from = of_lane(reinterpret_cast<const Pack<In, kWord>*>(in - before));
    unrolled<kWords>([&](unsigned k) {
      words[k] = words[0].filled(absent);
      if (is_there(k)) words[k] = from[k * kLanes];
      unrolled<kWord>([&](unsigned e) {
        if (is_outside(k, e)) words[k].set(e, absent);
      });
    });
  }

  /// The number of element 0 of the lane's word k, behind the first one of the first word.
  static __device__ unsigned begin(unsigned k) { return (threadIdx.x % kLanes + k * kLanes) * kWord; }
  template <class T>
  static __device__ T* of_lane(T* words) { return words + threadIdx.x % kLanes; }

  __device__ bool is_there(unsigned k) const { return k < kWholeWords || left(k) > 0; }
  /// True if word k is there, and that element of it is not the row's.
  __device__ bool is_outside(unsigned k, unsigned e) const {
    const bool is_behind = e > 0 && k >= kWholeWords && left(k) == static_cast<int>(e);
    return is_behind || (k == 0 && threadIdx.x % kLanes == 0 && e < before);
  }
  __device__ bool has(unsigned k, unsigned e) const { return is_there(k) && !is_outside(k, e); }
  /// True if all elements of word k are the row's.
  __device__ bool is_whole(unsigned k) const {
    return (k < kWholeWords || left(k) >= static_cast<int>(kWord)) &&
           (k > 0 || kWord == 1 || threadIdx.x % kLanes > 0 || before == 0);
  }

 private:
  /// How many elements there are from the first one of the lane's word k on.
  __device__ int left(unsigned k) const { return static_cast<int>(columns + before - begin(k)); }
};

/// The words that lanes have of rows of kLanes · kLeast to kLanes · kEach elements. There is code for each kStep of
/// them, for at most four numbers.
template <class In, unsigned kLanes, unsigned kLeast, unsigned kEach>
struct RowWordCounts {
  static constexpr unsigned kWord = kWordElements<In>;
  static constexpr unsigned kFewest = kLeast == 0 ? 1 : (kLeast + kWord - 1) / kWord;
  static constexpr unsigned kMost = kEach / kWord + (kWord - 1), kStep = (kMost - kFewest + 4) / 4;
  using Most = RowWords<In, kLanes, kMost, kFewest - 1>;  ///< for any of these rows

  /// Calls act.template with<Words>(), where Words are those of rows of so many columns. Recursive.
  template <unsigned kWords = kFewest + kStep - 1, class Act>
  static __device__ void choose(unsigned columns, const Act& act) {
    if constexpr (kWords < kMost)
      if (columns + (kWord - 1) > kWords * kLanes * kWord) return choose<kWords + kStep>(columns, act);
    act.template with<RowWords<In, kLanes, kWords, kWords - kStep>>();
  }
};

}  // namespace hone
