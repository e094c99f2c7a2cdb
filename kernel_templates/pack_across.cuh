// PackAcross: a pack that begins at any element, loaded as the two aligned packs that contain it.
#pragma once

#include "pack.cuh"

namespace hone {

/// A shifted load: a pack that begins at any element, as the two aligned packs that contain it. At least a word.
template <class T, unsigned kElements>
struct PackAcross {
  using Aligned = Pack<T, kElements>;
  Aligned low, high;

  /// Loads both packs, even if `from` is aligned.
  static __device__ PackAcross load(const T* from) {
    const auto* const aligned =
        reinterpret_cast<const Aligned*>(from - elements_behind_alignment<sizeof(Aligned)>(from));
    return {aligned[0], aligned[1]};
  }

  /// Loads what after(elements) takes, for a constant number of elements from an aligned address to `from`.
  static __device__ PackAcross load(const T* from, unsigned elements) {
    const auto* const aligned = reinterpret_cast<const Aligned*>(from - elements);
    PackAcross across;
    across.low = aligned[0];
    const unsigned bytes = elements * sizeof(T);
    if (bytes > 8) load_start<16>(across.high, aligned + 1);
    else if (bytes > 4) load_start<8>(across.high, aligned + 1);
    else if (bytes > 0) load_start<4>(across.high, aligned + 1);
    return across;
  }

  static __device__ PackAcross filled(T value) { return {Aligned::filled(value), Aligned::filled(value)}; }

  /// The pack that begins `elements` after `low`, fewer than a pack has. Fastest if the shift is uniform in the warp.
  __device__ Aligned after(unsigned elements) const {
    constexpr unsigned kWords = sizeof(Aligned) / 4;
    const unsigned bytes = elements * static_cast<unsigned>(sizeof(T));
    auto [words] = Words<PackAcross>(*this);
#pragma unroll
    for (unsigned step = kWords / 2; step > 0; step /= 2) {
#pragma unroll
      for (unsigned w = 0; w + step < 2 * kWords; ++w) words[w] = bytes & 4 * step ? words[w + step] : words[w];
    }
    Words<Aligned> result;
    unrolled<kWords>([&](unsigned w) {
      result.words[w] = sizeof(T) >= 4 ? words[w] : __funnelshift_r(words[w], words[w + 1], 8 * (bytes % 4));
    });
    return result.value();
  }

 private:
  /// Loads the first kBytes bytes of a pack, or all of it.
  template <unsigned kBytes>
  static __device__ void load_start(Aligned& pack, const Aligned* from) {
    using Part = Pack<unsigned, (kBytes < sizeof(Aligned) ? kBytes : sizeof(Aligned)) / 4>;
    const Part part = *reinterpret_cast<const Part*>(from);
    memcpy(&pack, &part, sizeof(Part));
  }
};

}  // namespace hone
