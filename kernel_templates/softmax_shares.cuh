// The share of a thread in a row, or in a tile of columns, of a softmax: packs that it holds in registers or in shared
// memory between the two passes, and the rest, which it reads twice.
//
// A Line (SoftmaxRow, SoftmaxColumnTile) has the packs of the thread: `first`, after(first, 1), … below `end`. A thread
// uses no element that another thread writes, so softmax may be in place.
#pragma once

#include "dynamic_smem.cuh"
#include "softmax_sums.cuh"

namespace hone {

/// An element that belongs to no pack and that a thread holds, if it does.
template <class In>
struct SoftmaxSingle {
  bool is_held = false;
  In element = In();
};

/// Maps packs of elements to results, once the States of their rows or columns are known.
template <class Types>
struct SoftmaxResults {
  using Acc = typename Types::Acc;
  using Out = typename Types::Out;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  static constexpr unsigned kElements = Types::kElements / Types::kStates;

  typename Types::Result of[Types::kStates];

  __device__ SoftmaxResults(const typename Types::State* states, const typename Types::Scale& scale) {
    unrolled<Types::kStates>([&](unsigned s) { of[s] = typename Types::Result(states[s], scale); });
  }

  __device__ OutPack operator()(const InPack& pack) const {
    return OutPack::of([&](unsigned e) { return convert<Out>(of[e / kElements].of(convert<Acc>(pack[e]))); });
  }

  /// Maps packs that a thread held: elements, or their weights relative to `heaviest`.
  __device__ auto of_held(const Acc (&)[Types::kStates]) const requires(!Types::kKeepsWeights) { return *this; }
  __device__ auto of_held(const Acc (&heaviest)[Types::kStates]) const requires Types::kKeepsWeights {
    const Array<Acc, Types::kStates> factors([&](unsigned s) { return of[s].of_weights(heaviest[s]); });
    return [factors](const InPack& weights) {
      return OutPack::of([&](unsigned e) { return convert<Out>(weights[e] * factors.values[e / kElements]); });
    };
  }
};

/// Adds a thread's packs from `first` on, kTile loads in flight.
template <unsigned kTile, class Types>
__device__ void add_packs(SoftmaxSums<Types>& sums, const auto& line, auto first, const typename Types::Scale& scale) {
  for (auto p = first; p < line.end; p = line.after(p, kTile)) {
    typename Types::InPack tile[kTile];
    unrolled<kTile>([&](unsigned u) {
      tile[u] = line.after(p, u) < line.end ? line.load(line.after(p, u)) : Types::neutral_pack(scale);
    });
    sums.template add<false>(tile, scale);
  }
}

/// Reads a thread's packs from `first` on again and writes their results, in reverse: the last may still be in cache.
template <unsigned kTile, class Types>
__device__ void write_packs(const SoftmaxResults<Types>& results, const auto& line, auto first) {
  if (first >= line.end) return;
  const auto step = line.after(0, kTile);
  for (auto p = first + (line.end - first - 1) / step * step;; p -= step) {
    typename Types::InPack tile[kTile];
    unrolled<kTile>([&](unsigned u) {
      if (line.after(p, u) < line.end) tile[u] = line.load_again(line.after(p, u));
    });
    unrolled<kTile>([&](unsigned u) {
      if (line.after(p, u) < line.end) line.store(line.after(p, u), results(tile[u]));
    });
    if (p == first) return;
  }
}

/// kPacks packs are held in registers, all others are read twice.
template <class Types, unsigned kPacks>
struct RegisterShare {
  using Scale = typename Types::Scale;
  static constexpr unsigned kTile = kPacks < 4 ? kPacks : 4;  ///< loads in flight for packs that are not held

  typename Types::InPack held[kPacks];
  SoftmaxSingle<typename Types::In> single;
  typename Types::Acc heaviest[Types::kStates];  ///< that kept weights are relative to

  __device__ void load(const auto& line, const Scale& scale) {
    unrolled<kPacks>([&](unsigned u) {
      const auto p = line.after(line.first, u);
      held[u] = p < line.end ? line.load(p) : Types::neutral_pack(scale);
    });
    single = line.load_single();
  }

  __device__ SoftmaxSums<Types> sums(const auto& line, const Scale& scale) {
    SoftmaxSums<Types> sums = line.start(scale, single);
    sums.template add<Types::kKeepsWeights>(held, scale);
    memcpy(heaviest, sums.heaviest, sizeof(heaviest));
    line.add_singles(sums, scale, single);
    add_packs<kTile>(sums, line, line.after(line.first, kPacks), scale);
    return sums;
  }

  __device__ void write(const auto& line, const SoftmaxResults<Types>& results) const {
    const auto of_held = results.of_held(heaviest);
    unrolled<kPacks>([&](unsigned u) {
      const auto p = line.after(line.first, u);
      const auto out = of_held(held[u]);
      if (p < line.end) line.store(p, out);
    });
    write_packs<kTile>(results, line, line.after(line.first, kPacks));
    line.write_singles(results, single);
  }
};

/// The same with packs in dynamic shared memory: as many per thread as the launch has room for.
template <class Types, unsigned kBlockThreads>
struct SharedShare {
  using InPack = typename Types::InPack;
  using Scale = typename Types::Scale;
  static constexpr unsigned kTile = 4;

  InPack* held;    ///< this thread's packs, kBlockThreads apart
  unsigned room;   ///< packs per thread
  unsigned packs;  ///< held of this row
  SoftmaxSingle<typename Types::In> single;
  typename Types::Acc heaviest[Types::kStates];

  __device__ explicit SharedShare(unsigned packs_per_thread)
      : held(reinterpret_cast<InPack*>(dynamic_smem) + threadIdx.x), room(packs_per_thread) {}

  __device__ void load(const auto& line, const Scale&) {
    packs = 0;
    if (line.first < line.end) {
      const auto mine = (line.end - line.first - 1) / line.after(0, 1) + 1;
      packs = mine < room ? static_cast<unsigned>(mine) : room;
    }
#pragma unroll 8
    for (unsigned k = 0; k < packs; ++k)
      copy_to_shared(held + k * kBlockThreads, line.address(line.after(line.first, k)));
    single = line.load_single();
    wait_for_copies();
  }

  __device__ void read_tile(InPack (&tile)[kTile], unsigned first, const Scale& scale) const {
    unrolled<kTile>([&](unsigned u) {
      tile[u] = first + u < packs ? held[(first + u) * kBlockThreads] : Types::neutral_pack(scale);
    });
  }

  __device__ SoftmaxSums<Types> sums(const auto& line, const Scale& scale) {
    SoftmaxSums<Types> sums = line.start(scale, single);
    InPack tile[kTile];
    for (unsigned k = 0; k < packs; k += kTile) {
      read_tile(tile, k, scale);
      sums.raise_to(tile, scale);
    }
    memcpy(heaviest, sums.heaviest, sizeof(heaviest));
    line.add_singles(sums, scale, single);
    for (unsigned k = 0; k < packs; k += kTile) {
      read_tile(tile, k, scale);
      sums.template add_weights<Types::kKeepsWeights>(tile, scale);
      if constexpr (Types::kKeepsWeights) {
        unrolled<kTile>([&](unsigned u) {
          if (k + u < packs) held[(k + u) * kBlockThreads] = tile[u];
        });
      }
    }
    add_packs<kTile>(sums, line, line.after(line.first, room), scale);
    return sums;
  }

  __device__ void write(const auto& line, const SoftmaxResults<Types>& results) const {
    write_packs<kTile>(results, line, line.after(line.first, room));
    const auto of_held = results.of_held(heaviest);
#pragma unroll 4
    for (unsigned k = 0; k < packs; ++k) {
      const InPack pack = held[k * kBlockThreads];
      line.store(line.after(line.first, k), of_held(pack));
    }
    line.write_singles(results, single);
  }
};

}  // namespace hone
