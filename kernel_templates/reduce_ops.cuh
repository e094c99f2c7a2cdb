// The reductions that are a MapReduce: sums, products, extremes, norms, counts.
//
// All operations have the same template arguments: the element type, the accumulator, the index and whether NaNs are
// ignored. Integer sums and products wrap modulo 2^64.
#pragma once

#include "map_reduce.cuh"

namespace hone {

template <class In, class Acc, class Index, bool kIgnoreNan>
using Sum = MapReduce<Identity, monoid::Plus, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using Product = MapReduce<Identity, monoid::Times, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using Min = MapReduce<Identity, monoid::Min<kIgnoreNan>, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using Max = MapReduce<Identity, monoid::Max<kIgnoreNan>, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using SumOfSquares = MapReduce<Square, monoid::Plus, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using L1Norm = MapReduce<Magnitude, monoid::Plus, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using L2Norm = MapReduce<Square, monoid::Plus, SquareRoot, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
struct MaxNorm : MapReduce<Magnitude, monoid::Max<kIgnoreNan>, Unchanged, In, Acc, Index, kIgnoreNan> {
  static __device__ Acc identity() { return Acc(0); }
};
template <class In, class Acc, class Index, bool kIgnoreNan>
using Dot = MapReduce<ProductOfPair, monoid::Plus, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using Any = MapReduce<NonZero, monoid::BitOr, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using All = MapReduce<NonZero, monoid::BitAnd, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using CountNonzero = MapReduce<NonZero, monoid::Plus, Unchanged, In, Acc, Index, kIgnoreNan>;

}  // namespace hone
