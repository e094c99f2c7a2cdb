// The share of a thread in a tile of softmax_columns.cuh: rows that it holds in registers between the two passes, and
// the rest, which it reads twice.
#pragma once

#include "softmax_column_states.cuh"
#include "softmax_column_tile.cuh"

namespace hone {

/// Maps elements of a thread's columns to results, once the State of each column is known.
template <class Types, unsigned kLanes>
struct ColumnResults {
  using Acc = typename Types::Acc;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  using Result = SoftmaxResult<Acc, Types::kLog>;
  static constexpr unsigned kElements = Types::kElements;

  Result of[kElements];

  /// `states`: of all columns of the tile.
  static __device__ ColumnResults from(const SoftmaxState<Acc>* states, const SoftmaxScale<Acc>& scale) {
    ColumnResults results;
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e)
      results.of[e] = Result(states[threadIdx.x % kLanes * kElements + e], scale);
    return results;
  }

  __device__ OutPack operator()(const InPack& pack) const {
    OutPack out;
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e) out.set(e, convert<typename Types::Out>(of[e].of(convert<Acc>(pack[e]))));
    return out;
  }
};

/// kPacks rows are held in registers, all others are read twice.
template <class Types, unsigned kBlockThreads, unsigned kLanes, unsigned kPacks>
struct SoftmaxColumnShare {
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  using State = typename Types::State;
  using Array = SoftmaxArray<Types>;
  using States = ColumnStates<Types>;
  using Tile = SoftmaxColumnTile<Types, kBlockThreads, kLanes>;
  using Results = ColumnResults<Types, kLanes>;
  static constexpr unsigned kElements = Types::kElements;
  static constexpr unsigned kTile = kPacks < 4 ? kPacks : 4;  ///< loads in flight for rows that are not held

  InPack held[kPacks];
  Acc origins[kElements];  ///< of kept weights, oriented

  __device__ void load(const Array& all, const Tile& tile) {
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const long long row = tile.first + u * tile.stride;
      held[u] = row < tile.end ? tile.load(all, row) : neutral_pack<InPack>(all.scale);
    }
  }

  __device__ void add_to(States& states, const Array& all, const Tile& tile) {
    states.template add<Types::kKeepsWeights>(held, all.scale);
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e) origins[e] = all.scale.oriented(states.heaviest[e]);
    add_rows(all, tile, tile.first + kPacks * tile.stride, states);
  }

  __device__ void write(const Array& all, const Tile& tile, const State* states) const {
    const Results results = Results::from(states, all.scale);
    write_rows(all, tile, tile.first + kPacks * tile.stride, results);
    Acc kept[kElements];
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e)
      kept[e] = rescaled_sum({origins[e], results.of[e].reciprocal},
                             all.scale.oriented(results.of[e].weights.half_origin * Acc(2)), all.scale.magnitude());
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const long long row = tile.first + u * tile.stride;
      if (row >= tile.end) continue;
      if constexpr (Types::kKeepsWeights) {
        OutPack out;
#pragma unroll
        for (unsigned e = 0; e < kElements; ++e) out.set(e, convert<Out>(held[u][e] * kept[e]));
        tile.store(all, row, out);
      } else {
        tile.store(all, row, results(held[u]));
      }
    }
  }

  /// Adds rows that are not held.
  static __device__ void add_rows(const Array& all, const Tile& tile, long long first, States& states) {
    for (long long row = first; row < tile.end; row += kTile * tile.stride) {
      InPack packs[kTile];
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u)
        packs[u] =
            row + u * tile.stride < tile.end ? tile.load(all, row + u * tile.stride) : neutral_pack<InPack>(all.scale);
      states.template add<false>(packs, all.scale);
    }
  }

  /// Reads rows again and writes their results, in reverse order: the last ones are most likely still in cache.
  static __device__ void write_rows(const Array& all, const Tile& tile, long long first, const Results& results) {
    if (first >= tile.end) return;
    const long long step = kTile * tile.stride;
    for (long long row = first + (tile.end - first - 1) / step * step; row >= first; row -= step) {
      InPack packs[kTile];
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u)
        if (row + u * tile.stride < tile.end) packs[u] = tile.load(all, row + u * tile.stride);
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u)
        if (row + u * tile.stride < tile.end) tile.store(all, row + u * tile.stride, results(packs[u]));
    }
  }
};

}  // namespace hone
