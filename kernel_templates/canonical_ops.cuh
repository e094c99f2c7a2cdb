// The operations of the canonical tree: results that are the same for every policy, grid and device.
//
// Canonical<Op> is an operation Op of reduction.cuh whose every step is one IEEE operation, rounded to nearest and
// never contracted. It has In, State, Index and
//
//   absent()                   combines with any State x to x, bit for bit
//   combine(State, State)      the same bits for exchanged operands
//   leaf(element)              the State of one element, which comes from a pack, or alone, after prepared()
//   prepared(pack or element)  the same in a type to compute with
//   absent_element<Element>()  if there is one: an element, or Pair, that changes no result
//   write(State, n, Out*)      the result, with one NaN for all
//
// or, with kByChunk, instead of leaf() and with the lower numbers first in combine(),
//
//   present(element, is_there) an Optional: the element as an accumulator, unless it is absent
//   of_chunk(group, States)    the States of the chunks that a group of threads shares, one each of kStates sequences:
//                              LaneGroup, or the columns of canonical_column_chunk.cuh. All threads get
//                              fold<Monoid>(results, leaf), the fold of leaf(Optional, sequence, number in the chunk).
//                              Of a group that is held, a third argument is called once a thread needs no element any
//                              more, before threads wait for others;
//                              unless kIsHeld, each fold reads the elements, and there are
//                              combine_threads<Monoid>(values), the fold of what threads have, and any(bool), true if
//                              it is for one of them;
//                              if kKnowsFirst, first(s) and count(s) are element 0 and the number of elements
#pragma once

#include "canonical_group.cuh"
#include "moment_ops.cuh"
#include "reduce_ops.cuh"
#include "widened.cuh"

namespace hone {

/// The quiet NaN that every NaN result becomes: devices differ in the NaNs that their arithmetic makes.
template <class Out>
__device__ Out canonical_nan() {
  if constexpr (kIsSmallFloat<Out>) {
    // The highest mantissa bit; formats without infinity have a single NaN, all ones.
    constexpr unsigned kMantissa = Out::kFormat.mantissa_bits, kExponent = Out::kFormat.exponent_bits;
    constexpr unsigned kOnes = (1u << (kMantissa + kExponent)) - 1;
    Out nan;
    constexpr unsigned kLow = Out::kFormat.has_infinity ? (1u << (kMantissa - 1)) - 1 : 0;
    nan.bits = static_cast<decltype(nan.bits)>(kOnes & ~kLow);
    return nan;
  } else {
    return quiet_nan<Out>();
  }
}

template <class Out, class Result>
__device__ void write_canonical(Result result, Out* out) {
  if constexpr (kIsFloating<Out>) *out = is_nan(result) ? canonical_nan<Out>() : convert<Out>(result);
  else *out = convert<Out>(result);
}

/// −0 plus x is x, also for x = −0.
struct CanonicalPlus {
  template <class Acc> static __device__ Acc absent() { return -Acc(0); }
  template <class Acc> static __device__ Acc combine(Acc a, Acc b) { return rounded_sum(a, b); }
  template <class Acc> static __device__ Acc closed(Acc root) { return rounded_sum(root, Acc(0)); }
};

struct CanonicalTimes {
  template <class Acc> static __device__ Acc absent() { return Acc(1); }
  template <class Acc> static __device__ Acc combine(Acc a, Acc b) { return rounded_product(a, b); }
  template <class Acc> static __device__ Acc closed(Acc root) { return root; }
};

template <class Op>
struct Canonical;

/// Sums, products, norms and means.
template <class Map, class Monoid, class End, class In_, class Acc, class Index_, bool kIgnoreNan>
struct Canonical<MapReduce<Map, Monoid, End, In_, Acc, Index_, kIgnoreNan>> {
  using In = In_;
  using State = Acc;
  using Index = Index_;
  static_assert(kIsFloating<Acc> && (kSame<Monoid, monoid::Plus> || kSame<Monoid, monoid::Times>),
                "other operations have the same result in every order");
  using Tree = typename Select<kSame<Monoid, monoid::Plus>, CanonicalPlus, CanonicalTimes>::type;

  static __device__ Acc absent() { return Tree::template absent<Acc>(); }
  static __device__ Acc combine(Acc a, Acc b) { return Tree::combine(a, b); }

  template <class T>
  static __device__ T prepared(const T& packed) { return packed; }
  template <class Element>
  static __device__ Acc leaf(Element x) {
    if constexpr (kIgnoreNan) {
      if (is_nan(x)) return absent();
    }
    return Map::template of<Acc>(x);
  }
  /// −0 in sums: its leaf is −0 or, where all leaves have magnitudes, 0. −0 times 0 is −0. In products 1.
  template <class Element>
  static __device__ Element absent_element() {
    if constexpr (requires(Element x) { x.a; }) return {convert<decltype(Element::a)>(absent()), {}};
    else return convert<Element>(absent());
  }

  template <class Out>
  static __device__ void write(Acc root, Index n, Out* out) { write_canonical(End::of(Tree::closed(root), n), out); }
};

/// The mean of what is not NaN.
template <class In_, class Acc, class Index_>
struct Canonical<MeanOfNumbers<In_, Acc, Index_>> {
  using In = In_;
  using Index = Index_;
  using State = FusedState<Index, Acc>;

  static __device__ State of_both(Index count, Acc sum) { return {Words<Index>(count), Words<Acc>(sum)}; }
  static __device__ State absent() { return of_both(0, -Acc(0)); }
  static __device__ State combine(State a, State b) {
    return of_both(a.first.value() + b.first.value(), rounded_sum(a.rest.value(), b.rest.value()));
  }
  template <class T>
  static __device__ T prepared(const T& packed) { return packed; }
  template <class Element>
  static __device__ State leaf(Element x) { return is_nan(x) ? absent() : of_both(1, convert<Acc>(x)); }

  template <class Out>
  static __device__ void write(State root, Index, Out* out) {
    write_canonical(OverCount::of(rounded_sum(root.rest.value(), Acc(0)), root.first.value()), out);
  }
};

/// The common part of operations with kByChunk.
template <class Acc, bool kIgnoreNan>
struct CanonicalByChunk {
  static constexpr bool kByChunk = true;

  template <class T>
  static __device__ T prepared(const T& packed) { return packed; }
  template <class Element>
  static __device__ Optional<Acc> present(Element x, bool is_there) {
    const Acc value = convert<Acc>(x);
    return {value, is_there && !(kIgnoreNan && is_nan(value))};
  }
};

/// Elements that are widened before anything else.
template <class Op, class T>
struct Canonical<Widened<Op, T>> : Canonical<Op> {
  using In = T;
  template <class Packed>
  static __device__ auto prepared(const Packed& packed) { return widened(packed); }
};

}  // namespace hone
