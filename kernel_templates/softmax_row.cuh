// One row of a softmax, as threads divide it: single elements before its first aligned pack and after its last whole
// one, and packs that a thread holds in registers or shared memory, or reads twice where there are more than it can
// hold.
//
// A thread reads no element that another one writes, so that results may replace their elements.
#pragma once

#include "softmax_math.cuh"
#include "streaming.cuh"

namespace hone {

__device__ constexpr unsigned divide_up(unsigned a, unsigned b) { return (a + b - 1) / b; }

/// The launch's dynamic shared memory.
extern __shared__ __align__(16) unsigned char dynamic_smem[];

/// What all threads of a kernel know. kAligned_: every row starts at a multiple of a pack, in the input and in the
/// output.
template <class In_, class Out_, class Acc_, class Index_, bool kLog_, bool kAligned_>
struct SoftmaxTypes {
  using In = In_;
  using Out = Out_;
  using Acc = Acc_;
  using Index = Index_;
  static constexpr bool kLog = kLog_;
  static constexpr bool kAligned = kAligned_;
  static constexpr unsigned kElements = 16 / (sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));  ///< of a pack
  using InPack = Pack<In, kElements>;
  using OutPack = Pack<Out, kElements>;
  using State = SoftmaxState<Acc>;
  using Scale = SoftmaxScale<Acc>;
  using Result = SoftmaxResult<Acc, kLog>;

  /// Weights take the place of their elements where they fit, and are computed once.
  static constexpr bool kKeepsWeights = !kLog && kSame<In, Acc>;

  static __device__ OutPack result_of(const InPack& pack, const Result& result) {
    OutPack out;
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e) out.set(e, convert<Out>(result.of(convert<Acc>(pack[e]))));
    return out;
  }
};

template <class Types>
struct Row {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Index = typename Types::Index;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  static constexpr unsigned kElements = Types::kElements;

  const In* in;
  Out* out;
  Index head;     ///< elements before the first pack
  Index packs;
  Index singles;  ///< elements in no pack
  bool in_step;   ///< the output's packs are aligned where the input's are

  __device__ Row(const In* in_, Out* out_, Index columns) : in(in_), out(out_), head(0), in_step(true) {
    if constexpr (!Types::kAligned && kElements > 1) {
      const unsigned unaligned = elements_before_alignment<sizeof(InPack)>(in);
      in_step = unaligned == elements_before_alignment<sizeof(OutPack)>(out);
      head = unaligned < columns ? unaligned : columns;
    }
    packs = (columns - head) / kElements;
    singles = columns - packs * kElements;
  }

  __device__ const InPack* pack(Index p) const { return reinterpret_cast<const InPack*>(in + head) + p; }

  __device__ void store(Index p, const OutPack& pack) const {
    if (Types::kAligned || in_step) {
      store_streaming(reinterpret_cast<OutPack*>(out + head) + p, pack);
    } else {
#pragma unroll
      for (unsigned e = 0; e < kElements; ++e) out[head + p * kElements + e] = pack[e];
    }
  }

  /// Where single element `i` lies.
  __device__ Index single(Index i) const { return i < head ? i : i + packs * kElements; }
};

/// Packs that are not held: every kThreads-th from a thread's first on, kTile of them at once.
template <class Types, unsigned kThreads, unsigned kTile>
struct PackRun {
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using InPack = typename Types::InPack;
  using Scale = typename Types::Scale;
  static constexpr Index kStep = static_cast<Index>(kTile) * kThreads;

  /// Adds the packs [first, end) to what a thread has: the weights in `sum` are relative to `heaviest`.
  static __device__ void add(const Row<Types>& row, Index first, Index end, const Scale& scale, Acc& heaviest,
                             Acc& sum) {
    for (Index p = first; p < end; p += kStep) {
      InPack tile[kTile];
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u)
        tile[u] = p + u * kThreads < end ? *row.pack(p + u * kThreads) : neutral_pack<InPack>(scale);
      const Acc now = heaviest_of(tile, heaviest, scale);
      if (now != heaviest) {
        sum = rescaled_sum({scale.oriented(heaviest), sum}, scale.oriented(now), scale.magnitude());
        heaviest = now;
      }
      const SoftmaxWeights<Acc> weights(heaviest, scale);
      Acc sums[kTile];
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u) sums[u] = weights.sum_of(tile[u]);
      sum += tree_sum<kTile>(sums);
    }
  }

  /// Reads them again, the last ones first: these are the most likely to be in a cache still.
  static __device__ void write(const Row<Types>& row, Index first, Index end, const typename Types::Result& result) {
    if (first >= end) return;
    for (Index p = first + (end - first - 1) / kStep * kStep;; p -= kStep) {
      InPack tile[kTile];
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u)
        if (p + u * kThreads < end) tile[u] = load_streaming(row.pack(p + u * kThreads));
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u)
        if (p + u * kThreads < end) row.store(p + u * kThreads, Types::result_of(tile[u], result));
      if (p == first) return;
    }
  }
};

/// The single elements of a row that one of kThreads threads has. There are hardly any, and in most rows none: they are
/// not held but loaded again, each time by the thread that writes them in the end.
template <class Types, unsigned kThreads>
struct Singles {
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;

  static __device__ Acc load(const Row<Types>& row, Index i) { return convert<Acc>(row.in[row.single(i)]); }

  static __device__ Acc heaviest(const Row<Types>& row, unsigned thread, const typename Types::Scale& scale) {
    Acc heaviest = scale.neutral();
#pragma unroll 1
    for (Index i = thread; i < row.singles; i += kThreads)
      heaviest = scale.descends() ? smaller<true>(heaviest, load(row, i)) : larger<true>(heaviest, load(row, i));
    return heaviest;
  }

  static __device__ Acc sum(const Row<Types>& row, unsigned thread, const SoftmaxWeights<Acc>& weights) {
    Acc sum(0);
#pragma unroll 1
    for (Index i = thread; i < row.singles; i += kThreads) sum += weights.of(load(row, i));
    return sum;
  }

  static __device__ void write(const Row<Types>& row, unsigned thread, const typename Types::Result& result) {
#pragma unroll 1
    for (Index i = thread; i < row.singles; i += kThreads)
      row.out[row.single(i)] = convert<typename Types::Out>(result.of(load(row, i)));
  }
};

/// What one of kThreads threads has of a row, in registers: kPacks packs, and all others twice.
template <class Types, unsigned kThreads, unsigned kPacks>
struct RegisterShare {
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using InPack = typename Types::InPack;
  using State = typename Types::State;
  using Scale = typename Types::Scale;
  using Ends = Singles<Types, kThreads>;
  using Rest = PackRun<Types, kThreads, (kPacks < 4 ? kPacks : 4)>;

  InPack held[kPacks];
  Acc origin;  ///< what kept weights are relative to, oriented

  __device__ void load(const Row<Types>& row, unsigned thread, const Scale& scale) {
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const Index p = thread + u * kThreads;
      held[u] = p < row.packs ? *row.pack(p) : neutral_pack<InPack>(scale);
    }
  }

  __device__ State state(const Row<Types>& row, unsigned thread, const Scale& scale) {
    Acc heaviest = heaviest_of(held, Ends::heaviest(row, thread, scale), scale);
    origin = scale.oriented(heaviest);
    const SoftmaxWeights<Acc> weights(heaviest, scale);
    Acc sums[kPacks];
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      if constexpr (Types::kKeepsWeights) {
#pragma unroll
        for (unsigned e = 0; e < Types::kElements; ++e) held[u].set(e, weights.of(held[u][e]));
        sums[u] = tree_sum<Types::kElements>(held[u].parts);
      } else {
        sums[u] = weights.sum_of(held[u]);
      }
    }
    Acc sum = tree_sum<kPacks>(sums) + Ends::sum(row, thread, weights);
    Rest::add(row, thread + static_cast<Index>(kPacks) * kThreads, row.packs, scale, heaviest, sum);
    return {scale.oriented(heaviest), sum};
  }

  __device__ void write(const Row<Types>& row, unsigned thread, State all, const Scale& scale) {
    const typename Types::Result result(all, scale);
    Rest::write(row, thread + static_cast<Index>(kPacks) * kThreads, row.packs, result);
    const Acc kept = rescaled_sum({origin, result.reciprocal}, all.largest, scale.magnitude());
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const Index p = thread + u * kThreads;
      if (p >= row.packs) continue;
      if constexpr (Types::kKeepsWeights) {
        typename Types::OutPack out;
#pragma unroll
        for (unsigned e = 0; e < Types::kElements; ++e)
          out.set(e, convert<typename Types::Out>(held[u][e] * kept));
        row.store(p, out);
      } else {
        row.store(p, Types::result_of(held[u], result));
      }
    }
    Ends::write(row, thread, result);
  }
};

/// The same in dynamic shared memory: as many packs a thread as the launch has room for.
template <class Types, unsigned kThreads, unsigned kBlockThreads>
struct SharedShare {
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using InPack = typename Types::InPack;
  using State = typename Types::State;
  using Scale = typename Types::Scale;
  static constexpr unsigned kTile = 4;
  using Ends = Singles<Types, kThreads>;
  using Rest = PackRun<Types, kThreads, kTile>;

  InPack* held;     ///< this thread's packs, kBlockThreads apart
  unsigned room;    ///< packs a thread
  unsigned packs;   ///< held of this row
  Acc origin;

  __device__ explicit SharedShare(unsigned packs_per_thread) : room(packs_per_thread) {
    held = reinterpret_cast<InPack*>(dynamic_smem) + threadIdx.x;
  }

  __device__ Index first_of_rest(unsigned thread) const { return thread + static_cast<Index>(room) * kThreads; }

  __device__ void load(const Row<Types>& row, unsigned thread, const Scale& scale) {
    packs = 0;
    if (thread < row.packs) {
      const Index mine = (row.packs - thread - 1) / kThreads + 1;
      packs = mine < room ? static_cast<unsigned>(mine) : room;
    }
#pragma unroll 8
    for (unsigned k = 0; k < packs; ++k)
      copy_to_shared(held + k * kBlockThreads, row.pack(thread + static_cast<Index>(k) * kThreads));
    wait_for_copies();
  }

  __device__ void read_tile(InPack (&tile)[kTile], unsigned first, const Scale& scale) const {
#pragma unroll
    for (unsigned u = 0; u < kTile; ++u)
      tile[u] = first + u < packs ? held[(first + u) * kBlockThreads] : neutral_pack<InPack>(scale);
  }

  __device__ State state(const Row<Types>& row, unsigned thread, const Scale& scale) {
    InPack tile[kTile];
    Acc heaviest = Ends::heaviest(row, thread, scale);
    for (unsigned k = 0; k < packs; k += kTile) {
      read_tile(tile, k, scale);
      heaviest = heaviest_of(tile, heaviest, scale);
    }
    origin = scale.oriented(heaviest);
    const SoftmaxWeights<Acc> weights(heaviest, scale);
    Acc sum = Ends::sum(row, thread, weights);
    for (unsigned k = 0; k < packs; k += kTile) {
      read_tile(tile, k, scale);
      Acc sums[kTile];
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u) {
        if constexpr (Types::kKeepsWeights) {
#pragma unroll
          for (unsigned e = 0; e < Types::kElements; ++e) tile[u].set(e, weights.of(tile[u][e]));
          sums[u] = tree_sum<Types::kElements>(tile[u].parts);
          if (k + u < packs) held[(k + u) * kBlockThreads] = tile[u];
        } else {
          sums[u] = weights.sum_of(tile[u]);
        }
      }
      sum += tree_sum<kTile>(sums);
    }
    Rest::add(row, first_of_rest(thread), row.packs, scale, heaviest, sum);
    return {scale.oriented(heaviest), sum};
  }

  __device__ void write(const Row<Types>& row, unsigned thread, State all, const Scale& scale) {
    const typename Types::Result result(all, scale);
    Rest::write(row, first_of_rest(thread), row.packs, result);
    const Acc kept = rescaled_sum({origin, result.reciprocal}, all.largest, scale.magnitude());
#pragma unroll 4
    for (unsigned k = 0; k < packs; ++k) {
      const InPack pack = held[k * kBlockThreads];
      const Index p = thread + static_cast<Index>(k) * kThreads;
      if constexpr (Types::kKeepsWeights) {
        typename Types::OutPack out;
#pragma unroll
        for (unsigned e = 0; e < Types::kElements; ++e)
          out.set(e, convert<typename Types::Out>(pack[e] * kept));
        row.store(p, out);
      } else {
        row.store(p, Types::result_of(pack, result));
      }
    }
    Ends::write(row, thread, result);
  }
};

}  // namespace hone
