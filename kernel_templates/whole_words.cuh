// WholeWords: short rows of a matrix in shared memory, read word by word.
#pragma once

#include "pack.cuh"

namespace hone {

/// Neighbouring rows of kColumns elements, as few as fill whole words of 4 bytes, wherever they begin. The lanes of a
/// warp read rows that lie side by side without bank conflicts if the number of words is odd.
template <class T, unsigned kColumns>
struct WholeWords {
  static constexpr unsigned kWordElements = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  static constexpr unsigned kRows = kColumns % kWordElements == 0 ? 1 : kColumns % 2 == 0 ? 2 : kWordElements;
  static constexpr unsigned kWords = kRows * kColumns / kWordElements;
  using Word = typename Select<sizeof(T) < 4, unsigned, T>::type;

  Word words[kWords];

  explicit __device__ WholeWords(const T* from) {
    const unsigned behind = sizeof(T) < 4 ? elements_behind_alignment<4>(from) : 0;
    const auto* const aligned = reinterpret_cast<const Word*>(from - behind);
    unrolled<kWords>([&](unsigned w) { words[w] = aligned[w]; });
    if constexpr (sizeof(T) < 4) {
      const unsigned last = behind != 0 ? aligned[kWords] : 0;
      unrolled<kWords>([&](unsigned w) {
        words[w] = __funnelshift_r(words[w], w + 1 < kWords ? words[w + 1] : last, 8 * behind * sizeof(T));
      });
    }
  }

  /// Element `i` of all rows.
  __device__ T operator[](unsigned i) const {
    T element;
    memcpy(&element, reinterpret_cast<const char*>(words) + i * sizeof(T), sizeof(T));
    return element;
  }
};

}  // namespace hone
