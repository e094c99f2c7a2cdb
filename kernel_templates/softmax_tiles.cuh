// Softmax of rows that are too short or too misaligned for vectorized loads of their own, in tiles (row_tiles.cuh).
#pragma once

#include "row_tiles.cuh"
#include "softmax.cuh"

namespace hone {

template <class Types, unsigned kBlockThreads, unsigned kGroup, unsigned kLeast, unsigned kEach, unsigned kRows>
struct SoftmaxTiles {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using State = typename Types::State;
  using Scale = typename Types::Scale;
  using Result = typename Types::Result;
  using Tiles = RowTiles<In, Out, typename Types::Index, kBlockThreads, kGroup, kLeast, kEach, kRows>;
  using Matrices = typename Tiles::Matrices;

  /// The rows of a thread.
  struct ThreadWork {
    Scale scale;

    /// Replaces the elements of a row by their results.
    template <unsigned kColumns>
    __device__ void row(Acc* values) const {
      const auto value = [&](unsigned k) { return values[k]; };
      const Acc heaviest = scale.descends() ? tree_of<monoid::Min<true>, kColumns>(value)
                                            : tree_of<monoid::Max<true>, kColumns>(value);
      const SoftmaxWeights<Acc> weights(heaviest, scale);
      const Acc sum = tree_of<monoid::Plus, kColumns>([&](unsigned k) {
        const Acc weight = weights.of(values[k]);
        if constexpr (!Types::kLog) values[k] = weight;
        return weight;
      });
      const Result result(State{scale.oriented(heaviest), sum}, scale);
      unrolled<kColumns>([&](unsigned k) {
        if constexpr (Types::kLog) values[k] = result.of(values[k]);
        else values[k] *= result.reciprocal;  // the heaviest element has weight 1
      });
    }
  };

  /// Computes one staged row. All lanes of the warp call it; lanes without a row write nothing.
  static __device__ void work(const In* in, Out* out, bool is_own, unsigned columns, const Scale& scale) {
    const unsigned lane = threadIdx.x % kGroup;
    Acc values[kEach];
    Acc heaviest = scale.neutral();
    Tiles::for_elements(columns, [&](unsigned k) {
      values[k] = Tiles::is_there(k, columns) ? convert<Acc>(in[lane + k * kGroup]) : scale.neutral();
      heaviest = scale.heavier(heaviest, values[k]);
    });
    const SoftmaxWeights<Acc> weights(heaviest, scale);
    Acc sum(0);
    Tiles::for_elements(columns, [&](unsigned k) {
      const Acc weight = weights.of(values[k]);
      sum += weight;
      if constexpr (!Types::kLog) values[k] = weight;
    });
    const State row = scale.template in_all_lanes<kGroup>(State{scale.oriented(heaviest), sum});
    if (!is_own) return;
    const Result result(row, scale);
    const Acc of_weights = result.of_weights(heaviest);
    Tiles::for_elements(columns, [&](unsigned k) {
      if (!Tiles::is_there(k, columns)) return;
      if constexpr (Types::kLog) out[lane + k * kGroup] = convert<Out>(result.of(values[k]));
      else out[lane + k * kGroup] = convert<Out>(values[k] * of_weights);
    });
  }

  static __device__ void run(const SoftmaxArguments<Acc>& arguments) {
    const SoftmaxRows<Types> rows{arguments};
    const Matrices all{rows.in(0), rows.out(0), rows.rows, static_cast<unsigned>(rows.columns), arguments.in_pitch,
                       arguments.out_pitch};
    const Scale scale = rows.scale;
    Tiles::start(all);
    Tiles::for_each_tile(all, [&](const In* in, Out* out, unsigned count) {
      if constexpr (Tiles::kUnrollsRows)
        Tiles::template for_thread_rows<Acc>(typename Tiles::template EachRow<ThreadWork>{{scale}}, in, out, count,
                                             all.columns);
      else
        Tiles::for_group_rows(all.columns, count, [&](unsigned at, bool is_own) {
          work(in + at, out + at, is_own, all.columns, scale);
        });
    });
  }
};

}  // namespace hone
