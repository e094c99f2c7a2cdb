// SoftmaxGuess: weights of a reproducible softmax that are summed before the heaviest element of the row is known.
#pragma once

#include "canonical_softmax_ops.cuh"

namespace hone {

/// An operation of CanonicalChunks: weights relative to 1. Keeps the heaviest element of the thread. Elements are
/// multiplied by the sign of the scale, so that the powers need no other one.
template <class Types>
struct SoftmaxGuess : CanonicalSum<typename Types::Acc> {
  using In = typename Types::In;
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using Most = Acc;
  Powers<Acc> powers;
  Acc factor;
  Most* most;

  __device__ SoftmaxGuess(Acc factor_, Most* most_)
      : powers(Powers<Acc>(factor_).folded()), factor(factor_), most(most_) {
    *most = lowest<Acc>();
  }
  static __device__ Acc absent() { return -Acc(0); }
  template <class T>
  static __device__ T prepared(const T& packed) { return packed; }
  __device__ Acc leaf(In x) const {
    const Acc wide = HeaviestElement<Types>{factor}.leaf(x);
    *most = larger<false>(*most, wide);
    return powers.of_scaled(wide);
  }
  __device__ Acc heaviest() const { return *most; }
};

/// Of 16-bit floats an instruction multiplies two, and one compares them.
template <class Types>
  requires(kIsFloat16<typename Types::In>)
struct SoftmaxGuess<Types> : CanonicalSum<typename Types::Acc> {
  using In = typename Types::In;
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using Two = Pack<In, 2>;
  using Most = unsigned;

  /// Element e of a word. The first one of each stands for both where they are compared.
  struct Element {
    unsigned word, e;
  };
  template <class ElementPack>
  struct ElementWords {
    ElementPack pack;
    __device__ Element operator[](unsigned e) const { return {pack.parts[e / 2], e % 2}; }
  };

  Powers<Acc> powers;
  Most* most;
  unsigned sign;  ///< of the scale, in both halves of a word

  __device__ SoftmaxGuess(Acc factor, Most* most_)
      : powers(Powers<Acc>(factor).folded()), most(most_), sign(factor < Acc(0) ? 0x80008000u : 0) {
    *most = Two::filled(convert<In>(lowest<Acc>())).parts[0];
  }
  static __device__ Acc absent() { return -Acc(0); }
  static __device__ In prepared(const In& x) { return x; }
  template <unsigned kElements>
  static __device__ auto prepared(const Pack<In, kElements>& pack) {
    return ElementWords<Pack<In, kElements>>{pack};
  }
  __device__ Acc leaf(In x) const { return leaf(Element{Two::filled(x).parts[0], 0}); }
  __device__ Acc leaf(const Element& element) const {
    const unsigned word = element.word ^ sign;
    if (element.e == 0) *most = extreme_of_pairs<true, In, false>(*most, word);
    const Two both{{word}};
    return powers.of_scaled(convert<Acc>(both[element.e]));
  }
  __device__ Acc heaviest() const {
    const Two both{{*most}};
    return larger<false>(convert<Acc>(both[0]), convert<Acc>(both[1]));
  }
};

}  // namespace hone
