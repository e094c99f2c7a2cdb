// TaggedState: a State that one block publishes and others wait for, without fences.
#pragma once

#include "bulk_copy.cuh"
#include "pack.cuh"

namespace hone {

/// A State, each word of which is stored together with a tag: who finds the tag has the word. Tags of one place rise.
template <class State>
struct alignas(16) TaggedState {
  static constexpr unsigned kWords = sizeof(State) / 4, kStored = (kWords + 1) / 2 * 2;
  unsigned long long words[kStored];

  __device__ void clear() {
    unrolled<kStored>([&](unsigned w) { store(w, 0); });
  }

  __device__ void publish(const State& state, unsigned tag) {
    const Words<State> values(state);
    unrolled<kWords>([&](unsigned w) { store(w, static_cast<unsigned long long>(tag) << 32 | values.words[w]); });
    if constexpr (kWords < kStored) store(kWords, 0);
  }

  /// Returns false if the State is not there yet.
  __device__ bool read(State& state, unsigned tag) {
    Words<State> values;
    bool is_there = true;
    unsigned long long found[kWords];
    load(found);
    unrolled<kWords>([&](unsigned w) {
      values.words[w] = static_cast<unsigned>(found[w]);
      is_there = is_there && found[w] >> 32 == tag;
    });
    state = values.value();
    return is_there;
  }

 private:
#ifdef HONE_HOST_DEVICE
  void store(unsigned w, unsigned long long word) { atomicExch(words + w, word); }
  void load(unsigned long long (&found)[kWords]) {
    for (unsigned w = 0; w < kWords; ++w) found[w] = atomicAdd(words + w, 0ull);
  }
#else
  __device__ void store(unsigned w, unsigned long long word) {
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(words + w), "l"(word) : "memory");
  }
  __device__ void load(unsigned long long (&found)[kWords]) {
    constexpr unsigned kAtOnce = kWords % 2 == 0 ? 2 : 1;
    unrolled<kWords / kAtOnce>([&](unsigned i) {
      const auto from = __cvta_generic_to_global(words + i * kAtOnce);
      if constexpr (kAtOnce == 2)
        asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(found[2 * i]), "=l"(found[2 * i + 1])
                     : "l"(from)
                     : "memory");
      else asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(found[i]) : "l"(from) : "memory");
    });
  }
#endif
};

/// Loads States with a tag, each when it is there, and returns when all of the warp's are. at(i) is the place of the
/// lane's i-th State; where is_there[i], it has it, or none.
template <unsigned kCount, class State>
__device__ void read_when_there(State (&states)[kCount], bool (&is_there)[kCount], unsigned tag, const auto& at) {
  for (;;) {
    bool is_complete = true;
    unrolled<kCount>([&](unsigned i) {
      if (!is_there[i]) is_there[i] = at(i).read(states[i], tag);
      is_complete = is_complete && is_there[i];
    });
    if (__all_sync(kFullMask, is_complete)) break;  // together: shuffles of lanes that come apart are slow
    __nanosleep(40);
  }
}

/// Waits until lanes of the warp may stage States where those of its last raise_states() were.
__device__ inline void wait_for_staged() {
  wait_for_bulk_reads();
  __syncwarp();
}

/// Raises States in global memory to those that lanes of the warp have staged in shared memory: each word to the higher
/// of both, and so to that with the later tag. All lanes call it.
template <class State>
__device__ void raise_states(TaggedState<State>* to, const TaggedState<State>* staged, unsigned count, unsigned lane) {
  fence_before_bulk_copies();
  __syncwarp();
  if (lane == 0) raise_in_bulk(to->words, staged->words, count * TaggedState<State>::kStored);
}

}  // namespace hone
