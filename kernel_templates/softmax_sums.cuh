// The State of a thread's elements in a softmax, and the results of packs. The elements of a pack belong to one row, or
// each to a column of its own.
#pragma once

#include "simd.cuh"
#include "softmax_math.cuh"

namespace hone {

/// The types and compile-time facts of a kernel. kElements_: of a pack. kStates_: rows or columns that a pack belongs
/// to, 1 or kElements_.
template <class In_, class Out_, class Acc_, class Index_, bool kLog_, unsigned kElements_, unsigned kStates_>
struct SoftmaxPackTypes {
  using In = In_;
  using Out = Out_;
  using Acc = Acc_;
  using Index = Index_;
  static constexpr bool kLog = kLog_;
  static constexpr unsigned kElements = kElements_;
  static constexpr unsigned kStates = kStates_;
  using InPack = Pack<In, kElements>;
  using OutPack = Pack<Out, kElements>;
  using State = ScaledSum<Acc>;
  using Scale = SoftmaxScale<Acc>;
  using Result = SoftmaxResult<Acc, kLog>;

  /// Weights replace their elements if they have the same type, and are then computed only once.
  static constexpr bool kKeepsWeights = !kLog && kSame<In, Acc>;

  /// A pack of neutral elements, for padding.
  static __device__ InPack neutral_pack(const Scale& scale) { return InPack::filled(convert<In>(scale.neutral())); }
};

/// Online softmax: the heaviest elements so far, and the sums of the weights relative to them.
template <class Types>
struct SoftmaxSums {
  using Acc = typename Types::Acc;
  using InPack = typename Types::InPack;
  using Scale = typename Types::Scale;
  static constexpr unsigned kStates = Types::kStates;
  static constexpr unsigned kElements = Types::kElements / kStates;  ///< of a pack, in each State

  Acc heaviest[kStates];
  Acc sum[kStates];

  explicit __device__ SoftmaxSums(const Scale& scale) {
    unrolled<kStates>([&](unsigned s) {
      heaviest[s] = scale.neutral();
      sum[s] = Acc(0);
    });
  }

  __device__ typename Types::State state(unsigned s, const Scale& scale) const {
    return {scale.oriented(heaviest[s]), sum[s]};
  }

  __device__ void add(unsigned s, typename Types::State other, const Scale& scale) {
    const typename Types::State both = scale.combine(state(s, scale), other);
    heaviest[s] = scale.oriented(both.reference);
    sum[s] = both.sum;
  }

  /// Adds the weights of some packs; with kKeep the weights replace the elements.
  template <bool kKeep, unsigned kPacks>
  __device__ void add(InPack (&tile)[kPacks], const Scale& scale) {
    raise_to(tile, scale);
    add_weights<kKeep>(tile, scale);
  }

  /// The heaviest elements become at least as heavy as those of some packs.
  template <unsigned kPacks>
  __device__ void raise_to(const InPack (&tile)[kPacks], const Scale& scale) {
    unrolled<kStates>([&](unsigned s) {
      Acc now = heaviest[s];
      if constexpr (kStates == 1) {
        now = scale.descends() ? extreme_of<false>(tile, now) : extreme_of<true>(tile, now);
      } else {
        unrolled<kPacks>([&](unsigned u) { now = scale.heavier(now, convert<Acc>(tile[u][s])); });
      }
      if (now == heaviest[s]) return;
      // For the initial State the compiler may omit the rescaling.
      sum[s] = sum[s] == Acc(0) ? Acc(0) : sum[s] * SoftmaxWeights<Acc>(now, scale).of(heaviest[s]);
      heaviest[s] = now;
    });
  }

  /// Adds the weights of packs none of whose elements is heavier than the heaviest.
  template <bool kKeep, unsigned kPacks>
  __device__ void add_weights(InPack (&tile)[kPacks], const Scale& scale) {
#pragma unroll
    for (unsigned s = 0; s < kStates; ++s) {
      const SoftmaxWeights<Acc> weights(heaviest[s], scale);
      sum[s] += tree_of<monoid::Plus, kPacks>([&](unsigned u) {
        return tree_of<monoid::Plus, kElements>([&](unsigned e) {
          const Acc weight = weights.of(convert<Acc>(tile[u][s * kElements + e]));
          if constexpr (kKeep) tile[u].set(s * kElements + e, weight);
          return weight;
        });
      });
    }
  }
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

}  // namespace hone
